"""The files of the contract."""

from google.protobuf.descriptor import FileDescriptor

from support.harness import CONTRACT


def files_of(files: set[FileDescriptor]) -> set[FileDescriptor]:
    """Returns files and all that they import, within the contract's package."""
    found = files | {imported for file in files for imported in file.dependencies}
    found = {file for file in found if file.package == "rummikub.v1"}
    return found if found == files else files_of(found)


FILES = sorted(files_of({service.file for service in CONTRACT}), key=lambda file: file.name)
