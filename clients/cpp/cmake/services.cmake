# Writes a header with a class for each service of the contract, and a method for each of its RPCs: Games for GameService,
# and so on. WatchGame is left out: Client::watch has it.
function(write_services protos header)
  set(text "// Written by CMake from the services of the contract.\n#pragma once\n\n#include \"rummikub/calls.hpp\"\n")
  foreach(proto IN LISTS protos)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${proto}")
    get_filename_component(file "${proto}" NAME_WE)
    string(APPEND text "#include \"rummikub/v1/${file}.grpc.pb.h\"\n")
  endforeach()
  string(APPEND text "\nnamespace rummikub {\n")
  foreach(proto IN LISTS protos)
    file(STRINGS "${proto}" lines REGEX "^(service|  rpc) ")
    foreach(line IN LISTS lines)
      if(line MATCHES "^service ([A-Za-z]+)Service ")
        set(service "${CMAKE_MATCH_1}")
        set(class "${service}")
        if(service MATCHES "^(Challenge|Game|Puzzle|Record|Turn)$")
          set(class "${service}s")
        endif()
        string(APPEND text "\nclass ${class} : public Calls<v1::${service}Service> {\n public:\n  using Calls::Calls;\n")
      elseif(line MATCHES "rpc ([A-Za-z]+)\\(([A-Za-z]+)\\) returns \\(([A-Za-z]+)\\)")
        string(APPEND text
          "  v1::${CMAKE_MATCH_3} ${CMAKE_MATCH_1}(const v1::${CMAKE_MATCH_2}& request, const CallOptions& options = {}) const {\n"
          "    return call(\"${CMAKE_MATCH_1}\", &v1::${service}Service::Stub::${CMAKE_MATCH_1}, request, options);\n  }\n")
      elseif(line MATCHES "rpc ([A-Za-z]+)\\(stream ([A-Za-z]+)\\) returns \\(stream ([A-Za-z]+)\\)")
        string(APPEND text
          "  Stream<v1::${CMAKE_MATCH_2}, v1::${CMAKE_MATCH_3}> ${CMAKE_MATCH_1}() const {\n"
          "    return stream<v1::${CMAKE_MATCH_2}, v1::${CMAKE_MATCH_3}>(\"${CMAKE_MATCH_1}\","
          " [](Stub& stub, grpc::ClientContext* context) { return stub.${CMAKE_MATCH_1}(context); });\n  }\n")
      endif()
    endforeach()
    string(APPEND text "};\n")
  endforeach()
  string(APPEND text "\n}  // namespace rummikub\n")
  file(CONFIGURE OUTPUT "${header}" CONTENT "${text}" @ONLY)
endfunction()
