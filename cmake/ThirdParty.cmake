# SPDX-License-Identifier: Apache-2.0
# Third-party code as the target hf_third_party: libduckdb and nanoarrow out of
# third_party/, the rest from Debian. Its headers are system headers, and what is built
# here is built without our warnings.

set(HF_THIRD_PARTY ${CMAKE_SOURCE_DIR}/third_party)
if(NOT EXISTS ${HF_THIRD_PARTY}/duckdb/lib/libduckdb.so OR NOT EXISTS ${HF_THIRD_PARTY}/nanoarrow/src/nanoarrow.c)
  message(FATAL_ERROR "third_party/ is not complete: run `make setup`")
endif()

find_package(PkgConfig REQUIRED)
pkg_check_modules(HF_DEBIAN REQUIRED IMPORTED_TARGET json-c libprotobuf-c libxxhash liblz4 libzstd sqlite3)
pkg_check_modules(HF_EDIT REQUIRED IMPORTED_TARGET libedit)
find_program(PROTOC_C protoc-c REQUIRED)

# Linked through a relative link in the build folder, so that run paths start at $ORIGIN.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
file(RELATIVE_PATH libduckdb ${CMAKE_BINARY_DIR}/lib ${HF_THIRD_PARTY}/duckdb/lib/libduckdb.so)
file(CREATE_LINK ${libduckdb} ${CMAKE_BINARY_DIR}/lib/libduckdb.so SYMBOLIC)
add_library(duckdb SHARED IMPORTED)
set_target_properties(duckdb PROPERTIES IMPORTED_LOCATION ${CMAKE_BINARY_DIR}/lib/libduckdb.so)
target_include_directories(duckdb SYSTEM INTERFACE ${HF_THIRD_PARTY}/duckdb/include)

# nanoarrow with its flatcc; symbols prefixed HfNa. The bundle holds all of it in three files.
file(GLOB sources ${HF_THIRD_PARTY}/nanoarrow/src/*.c)
add_library(nanoarrow STATIC ${sources})
target_include_directories(nanoarrow SYSTEM PUBLIC ${HF_THIRD_PARTY}/nanoarrow/include)
target_compile_definitions(nanoarrow PRIVATE NANOARROW_IPC_WITH_LZ4 NANOARROW_IPC_WITH_ZSTD)
target_compile_options(nanoarrow PRIVATE -w)
string(REGEX REPLACE ",?undefined" "" sanitize "${HOLDFAST_SANITIZE}") # it reads unaligned, by design
if(sanitize)
  target_compile_options(nanoarrow PRIVATE -fsanitize=${sanitize})
endif()
target_link_libraries(nanoarrow PRIVATE PkgConfig::HF_DEBIAN)
set_target_properties(nanoarrow PROPERTIES C_VISIBILITY_PRESET hidden)

# proto/**/*.proto → <build>/proto/**/*.pb-c.[ch], included as "holdfast/v1/x.pb-c.h".
file(GLOB_RECURSE protos CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/proto ${CMAKE_SOURCE_DIR}/proto/*.proto)
set(generated "")
foreach(proto ${protos})
  string(REGEX REPLACE "\\.proto$" ".pb-c" stem ${proto})
  set(out ${CMAKE_BINARY_DIR}/proto/${stem}.c ${CMAKE_BINARY_DIR}/proto/${stem}.h)
  list(TRANSFORM protos PREPEND ${CMAKE_SOURCE_DIR}/proto/ OUTPUT_VARIABLE all_protos)
  add_custom_command(OUTPUT ${out}
    COMMAND ${PROTOC_C} --c_out=${CMAKE_BINARY_DIR}/proto -I${CMAKE_SOURCE_DIR}/proto ${proto}
    DEPENDS ${all_protos} VERBATIM COMMENT "protoc-c ${proto}")
  list(APPEND generated ${out})
endforeach()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/proto)

add_library(hf_third_party INTERFACE)
target_link_libraries(hf_third_party INTERFACE duckdb nanoarrow PkgConfig::HF_DEBIAN m)
target_include_directories(hf_third_party SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/proto)

if(generated)
  add_custom_target(hf_proto_files DEPENDS ${generated})
  add_library(hf_proto OBJECT ${generated})
  target_compile_options(hf_proto PRIVATE -w)
  target_include_directories(hf_proto SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/proto)
  target_link_libraries(hf_proto PRIVATE PkgConfig::HF_DEBIAN)
endif()
