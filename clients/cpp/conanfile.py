"""The Conan recipe of the C++ client, for the archive of a release: `conan create .`."""

from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout
from conan.tools.files import copy, load


class RummikubClient(ConanFile):
    """The package rummikub-client."""

    name = "rummikub-client"
    license = "MIT"
    description = "C++ client of the Rummikub rules service"
    settings = "os", "compiler", "build_type", "arch"
    requires = "grpc/[>=1.51]", "protobuf/[>=3.21]"
    tool_requires = "protobuf/<host_version>", "grpc/<host_version>"
    generators = "CMakeDeps", "CMakeToolchain"
    exports_sources = (
        "CMakeLists.txt",
        "LICENSE",
        "cmake/*",
        "contract/*",
        "include/*",
        "proto/*",
        "service_config.json",
        "src/*",
    )

    def set_version(self) -> None:
        """Takes the version from CMakeLists.txt."""
        self.version = load(self, Path(self.recipe_folder) / "CMakeLists.txt").partition(" VERSION ")[2].split()[0]

    def layout(self) -> None:
        """Uses the folders of CMake."""
        cmake_layout(self)

    def build(self) -> None:
        """Builds the library."""
        cmake = CMake(self)
        cmake.configure(variables={"RUMMIKUB_BUILD_TESTS": "OFF"})
        cmake.build()

    def package(self) -> None:
        """Installs it, with its license."""
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, Path(self.package_folder) / "licenses")

    def package_info(self) -> None:
        """Names the targets as the installation of CMake does."""
        self.cpp_info.set_property("cmake_file_name", "rummikub-client")
        includes = ["include/rummikub-client"]
        self.cpp_info.components["contract"].set_property("cmake_target_name", "rummikub::contract")
        self.cpp_info.components["contract"].libs = ["rummikub_contract"]
        self.cpp_info.components["contract"].includedirs = includes
        self.cpp_info.components["contract"].requires = ["grpc::grpc++", "protobuf::libprotobuf"]
        self.cpp_info.components["client"].set_property("cmake_target_name", "rummikub::client")
        self.cpp_info.components["client"].libs = ["rummikub_client"]
        self.cpp_info.components["client"].includedirs = includes
        self.cpp_info.components["client"].requires = ["contract"]
