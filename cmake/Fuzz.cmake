# SPDX-License-Identifier: Apache-2.0
# Targets of fuzzing, tests/fuzz/fuzz_<target>.c, each built twice over:
#   fuzz/<target>_replay  over its seeds and some altered ones, a test with label fuzz
#   fuzz/<target>         libFuzzer; with -DHOLDFAST_FUZZ=ON (clang), on `--target fuzz`
# The seeds are made when they are needed first, by real work, in <build>/fuzz/seeds/.
file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
if(NOT TARGET hf_test_support OR NOT fuzz_sources)
  return()
endif()
set(fuzz_dir ${CMAKE_BINARY_DIR}/fuzz)

# Doors that make_seeds.c listens at.
set(listened engine_plan_json executor_submit block_index_encode plan_lower)
list(TRANSFORM listened PREPEND -Wl,--wrap=)
add_executable(fuzz_make_seeds tests/fuzz/make_seeds.c)
target_link_libraries(fuzz_make_seeds PRIVATE hf_settings hf_test_support)
target_link_options(fuzz_make_seeds PRIVATE ${listened})
set_target_properties(fuzz_make_seeds PROPERTIES OUTPUT_NAME make_seeds RUNTIME_OUTPUT_DIRECTORY ${fuzz_dir})
hf_register(fuzz/make_seeds fuzz fuzz_make_seeds ${fuzz_dir}/seeds ${CMAKE_SOURCE_DIR}/tests/fuzz/seeds)
set_tests_properties(fuzz/make_seeds PROPERTIES FIXTURES_SETUP fuzz_seeds)

add_custom_target(fuzz DEPENDS fuzz_make_seeds)
foreach(source ${fuzz_sources})
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "fuzz_" "" target ${name})
  add_executable(${name}_replay ${source} tests/fuzz/replay.c)
  target_link_libraries(${name}_replay PRIVATE hf_settings hf_test_support)
  set_target_properties(${name}_replay PROPERTIES
    OUTPUT_NAME ${target}_replay RUNTIME_OUTPUT_DIRECTORY ${fuzz_dir})
  hf_register(fuzz/${target} fuzz ${name}_replay ${fuzz_dir}/seeds/${target})
  set_tests_properties(fuzz/${target} PROPERTIES FIXTURES_REQUIRED fuzz_seeds)
  if(HOLDFAST_FUZZ)
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
    target_link_libraries(${name} PRIVATE hf_settings hf_test_support)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES OUTPUT_NAME ${target} RUNTIME_OUTPUT_DIRECTORY ${fuzz_dir})
    add_dependencies(fuzz ${name})
  endif()
endforeach()
