# SPDX-License-Identifier: Apache-2.0
# The house: the folders of src/ in the order of tools/lint/folders, each an object
# library hf_<folder>; then the libraries and the command made of them.

file(STRINGS tools/lint/folders folders REGEX "^[a-z]")
list(REMOVE_ITEM folders cli)
if(NOT HOLDFAST_HARNESS)
  list(REMOVE_ITEM folders harness)
endif()

# What the harness stands on: nothing that schedules, holds or talks to others.
set(harness_folders base arrow compare engine store source tree sql relation plan wire stage staging exchange channel
  witness harness)

set(objects "")
set(harness_objects "")
foreach(folder ${folders})
  file(GLOB sources CONFIGURE_DEPENDS src/${folder}/*.c)
  if(sources)
    add_library(hf_${folder} OBJECT ${sources})
    target_link_libraries(hf_${folder} PRIVATE hf_settings hf_third_party)
    if(TARGET hf_proto)
      add_dependencies(hf_${folder} hf_proto_files)
    endif()
    list(APPEND objects $<TARGET_OBJECTS:hf_${folder}>)
    if(folder IN_LIST harness_folders)
      list(APPEND harness_objects $<TARGET_OBJECTS:hf_${folder}>)
    endif()
  endif()
endforeach()
if(NOT objects)
  message(STATUS "src/ is empty: nothing to build yet")
  return()
endif()
if(TARGET hf_proto)
  list(APPEND objects $<TARGET_OBJECTS:hf_proto>)
  list(APPEND harness_objects $<TARGET_OBJECTS:hf_proto>)
endif()

# For tests, benchmarks and the command: every symbol can be reached.
add_library(holdfast_internal STATIC ${objects})
target_link_libraries(holdfast_internal PUBLIC hf_settings hf_third_party)

# The harness with what it stands on; tests/harness links nothing else.
if(HOLDFAST_HARNESS)
  add_library(holdfast_harness STATIC ${harness_objects})
  target_link_libraries(holdfast_harness PUBLIC hf_settings hf_third_party)
  set_target_properties(holdfast_harness PROPERTIES OUTPUT_NAME holdfast-harness)
  target_compile_definitions(hf_verify PRIVATE HOLDFAST_HARNESS)
  list(REMOVE_ITEM objects $<TARGET_OBJECTS:hf_harness> $<TARGET_OBJECTS:hf_verify> $<TARGET_OBJECTS:hf_generate>)
endif()

# For users: only hf_* is exported (tools/lint/exports checks the built file).
add_library(holdfast SHARED ${objects})
target_link_libraries(holdfast PRIVATE hf_settings hf_third_party)
target_include_directories(holdfast INTERFACE ${CMAKE_SOURCE_DIR}/include)
target_link_options(holdfast PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/holdfast.map)
if(NOT HOLDFAST_SANITIZE)
  target_link_options(holdfast PRIVATE -Wl,-z,defs)
endif()
set_target_properties(holdfast PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/holdfast.map
  BUILD_WITH_INSTALL_RPATH ON # one run path for both places: CMake would pad that of the build with empty parts
  INSTALL_RPATH "$ORIGIN/lib;$ORIGIN/holdfast")

file(GLOB sources CONFIGURE_DEPENDS src/cli/*.c)
if(sources)
  add_executable(holdfast_command ${sources})
  target_link_libraries(holdfast_command PRIVATE holdfast_internal PkgConfig::HF_EDIT)
  if(HOLDFAST_HARNESS)
    target_compile_definitions(holdfast_command PRIVATE HOLDFAST_HARNESS) # of `verify`
  endif()
  set_target_properties(holdfast_command PROPERTIES OUTPUT_NAME holdfast BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "$ORIGIN/lib;$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/holdfast")
endif()

# bench/*.c, each with bench/support/*.c: only on `--target bench`.
add_custom_target(bench)
file(GLOB bench_support CONFIGURE_DEPENDS bench/support/*.c)
file(GLOB sources CONFIGURE_DEPENDS bench/*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(bench_${name} EXCLUDE_FROM_ALL ${source} ${bench_support})
  target_include_directories(bench_${name} PRIVATE bench)
  target_link_libraries(bench_${name} PRIVATE holdfast_internal)
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  add_dependencies(bench bench_${name})
endforeach()
