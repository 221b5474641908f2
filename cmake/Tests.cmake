# SPDX-License-Identifier: Apache-2.0
# Tests, found by glob and run by CTest, each a process with a deadline of its own:
#   tests/unit/<folder>/test_*.c  cmocka, mirrors src/<folder>   label unit
#   tests/e2e/test_*.c            cmocka, whole queries          label e2e
#   tests/chaos/test_*.c          cmocka, many random actions    label chaos
#   tests/cli/*.sh, *.py          any executable script          label cli
#   tests/golden/<suite>/*.plan   staged plans as text           label golden
#   tests/harness/test_*.c        cmocka, the harness alone      label harness
#   tests/isolation/*.spec        permutations of steps          label isolation
#   models/check                  spin, every interleaving       label models
#   examples/*.c                  public header and library only label example
# tests/support/*.c is linked into the tests in C. Scripts find the command in $HOLDFAST.
enable_testing()
if(NOT TARGET holdfast_internal)
  return()
endif()

set(HF_TEST_ENVIRONMENT
  "HOLDFAST=${CMAKE_BINARY_DIR}/holdfast"
  "HOLDFAST_SOURCE=${CMAKE_SOURCE_DIR}"
  "HOLDFAST_SANITIZE=${HOLDFAST_SANITIZE}"
  "HOLDFAST_EXTENSION_DIRECTORY=${HF_THIRD_PARTY}/duckdb-extensions"
  "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:abort_on_error=1"
  "UBSAN_OPTIONS=print_stacktrace=1"
  "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tools/lsan.supp:print_suppressions=0"
  "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tools/tsan.supp:halt_on_error=1:second_deadlock_stack=1")

set(HF_TEST_SECONDS 600) # ends what hangs; a machine with other work may be ten times slower
if(HOLDFAST_SANITIZE)
  set(HF_TEST_SECONDS 3600) # sanitizers slow our code down several times
endif()
function(hf_register name label)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${HF_TEST_SECONDS} ENVIRONMENT "${HF_TEST_ENVIRONMENT}")
endfunction()

# hf_c_test(SOURCE LABEL LIBRARY...): builds tests/a/b/test_c.c as <build>/tests/a/b/test_c
function(hf_c_test source label)
  file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${source})
  string(REGEX REPLACE "\\.c$" "" path ${path})
  string(REGEX REPLACE "[^A-Za-z0-9]" "_" target ${path})
  get_filename_component(directory ${path} DIRECTORY)
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE hf_settings ${ARGN})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${directory})
  get_filename_component(name ${path} NAME)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
  string(REGEX REPLACE "^tests/" "" test_name ${path})
  hf_register(${test_name} ${label} ${target})
endfunction()

pkg_check_modules(HF_CMOCKA REQUIRED IMPORTED_TARGET cmocka)
set(test_libraries holdfast_internal PkgConfig::HF_CMOCKA)
file(GLOB support CONFIGURE_DEPENDS tests/support/*.c)
if(support)
  add_library(hf_test_support STATIC ${support})
  target_link_libraries(hf_test_support PUBLIC ${test_libraries})
  target_include_directories(hf_test_support PUBLIC ${CMAKE_SOURCE_DIR}/tests)
  list(PREPEND test_libraries hf_test_support)
endif()

file(GLOB sources CONFIGURE_DEPENDS tests/unit/*/test_*.c)
foreach(source ${sources})
  hf_c_test(${source} unit ${test_libraries})
endforeach()
file(GLOB sources CONFIGURE_DEPENDS tests/e2e/test_*.c)
foreach(source ${sources})
  hf_c_test(${source} e2e ${test_libraries})
endforeach()
file(GLOB sources CONFIGURE_DEPENDS tests/chaos/test_*.c)
foreach(source ${sources})
  hf_c_test(${source} chaos ${test_libraries})
  get_filename_component(name ${source} NAME_WE)
  set_tests_properties(chaos/${name} PROPERTIES TIMEOUT 2400) # each has an alarm of its own
endforeach()
foreach(function alloc zalloc realloc alloc_aligned free strdup strndup) # it counts what they gave and got back
  target_link_options(tests_chaos_test_long_session PRIVATE -Wl,--wrap=mem_${function})
endforeach()
file(GLOB sources CONFIGURE_DEPENDS examples/*.c)
foreach(source ${sources})
  hf_c_test(${source} example holdfast)
endforeach()

# tests/isolation/*.c: the runner of tests/isolation/*.spec, interleavings as text.
file(GLOB sources CONFIGURE_DEPENDS tests/isolation/*.c)
file(GLOB specs CONFIGURE_DEPENDS tests/isolation/*.spec)
add_executable(isolation_run ${sources})
target_link_libraries(isolation_run PRIVATE hf_settings ${test_libraries})
set_target_properties(isolation_run PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
foreach(spec ${specs})
  get_filename_component(name ${spec} NAME_WE)
  hf_register(isolation/${name} isolation $<TARGET_FILE:isolation_run> ${spec})
endforeach()

# tests/corpus/*.c: the runner of sqllogictest files, which runs those of tests/slt.
file(GLOB sources CONFIGURE_DEPENDS tests/corpus/*.c)
if(sources)
  add_executable(slt_run ${sources})
  target_link_libraries(slt_run PRIVATE hf_settings ${test_libraries})
  set_target_properties(slt_run PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  hf_register(slt/whole e2e slt_run --strict 1 ${CMAKE_SOURCE_DIR}/tests/slt)
  foreach(tasks 2 3 7)
    hf_register(slt/cut_${tasks} e2e slt_run --strict 1 --cut ${tasks} --share 97 ${CMAKE_SOURCE_DIR}/tests/slt)
  endforeach()
endif()

# tests/harness: the harness with nothing but what it stands on; and suites of queries under its overlays, over data that
# are made once.
if(HOLDFAST_HARNESS)
  file(GLOB sources CONFIGURE_DEPENDS tests/harness/test_*.c)
  foreach(source ${sources})
    hf_c_test(${source} harness holdfast_harness PkgConfig::HF_CMOCKA)
  endforeach()
  # The program of docs/harness.md, taken out of the page.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS docs/harness.md)
  file(READ docs/harness.md page)
  string(FIND "${page}" "#include" begin)
  string(SUBSTRING "${page}" ${begin} -1 page)
  string(FIND "${page}" "```" end)
  string(SUBSTRING "${page}" 0 ${end} page)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/tests/harness_page.c CONTENT "${page}" @ONLY)
  add_executable(harness_page ${CMAKE_BINARY_DIR}/tests/harness_page.c)
  target_link_libraries(harness_page PRIVATE holdfast_harness)
  set_target_properties(harness_page PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  hf_register(harness/page harness ${CMAKE_SOURCE_DIR}/tests/harness/page.sh $<TARGET_FILE:harness_page>
    ${CMAKE_SOURCE_DIR}/docs/harness.md)
  add_executable(suite_run tests/harness/suite_run.c)
  target_link_libraries(suite_run PRIVATE hf_settings holdfast_internal)
  set_target_properties(suite_run PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(suite_data ${CMAKE_BINARY_DIR}/tests/data)
  function(hf_suite name suite least) # and overlays; `least` queries of each must be distributed
    hf_register(harness/${name} harness suite_run ${suite_data} ${suite} 0.01 ${least} ${ARGN})
    set_tests_properties(harness/${name} PROPERTIES FIXTURES_REQUIRED ${suite}_data TIMEOUT 2400)
  endfunction()
  foreach(suite tpch tpcds)
    hf_register(harness/${suite}_data harness suite_run ${suite_data} ${suite} 0.01 0 -)
    set_tests_properties(harness/${suite}_data PROPERTIES FIXTURES_SETUP ${suite}_data)
  endforeach()
  hf_suite(tpch_tasks tpch 22 tasks_1 tasks_2 tasks_3 tasks_7)
  hf_suite(tpch_deals tpch 22 one_partition_a_task partitions_11 slots_2 random_order hash_zero)
  hf_suite(tpch_inputs tpch 22 broadcast_always broadcast_never held inlined)
  hf_suite(tpch_attempts tpch 22 fresh_instances batch_rows_1 kill_task)
  hf_suite(tpch_streams tpch 22 streaming streaming_small kill_task_streaming)
  hf_suite(tpcds_tasks tpcds 97 tasks_3)
  hf_suite(tpcds_joins tpcds 97 broadcast_never)
  hf_suite(tpcds_streams tpcds 97 streaming)
  hf_suite(tpch_again tpch 22 again)
  hf_suite(tpcds_again tpcds 97 again)
endif()

# tests/golden/golden.c writes staged plans, which must be those of the tree.
add_executable(golden tests/golden/golden.c)
target_link_libraries(golden PRIVATE hf_settings holdfast_internal)
set_target_properties(golden PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
foreach(suite tpch tpcds)
  hf_register(golden/${suite} golden ${CMAKE_SOURCE_DIR}/tests/golden/check $<TARGET_FILE:golden> ${suite})
endforeach()

file(GLOB scripts CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/tests tests/cli/*.sh tests/cli/*.py)
foreach(script ${scripts})
  hf_register(${script} cli ${CMAKE_SOURCE_DIR}/tests/${script})
endforeach()

# models/check: spin over models/*.pml; nothing of ours is run, so one build is enough.
if(NOT HOLDFAST_SANITIZE)
  hf_register(models/check models ${CMAKE_SOURCE_DIR}/models/check)
  set_tests_properties(models/check PROPERTIES TIMEOUT 1200 COST 1000) # the longest: begun first
endif()

hf_register(lint/exports lint ${CMAKE_SOURCE_DIR}/tools/lint/exports $<TARGET_FILE:holdfast>)
hf_register(lint/globals lint ${CMAKE_SOURCE_DIR}/tools/lint/globals ${CMAKE_BINARY_DIR})
if(NOT HOLDFAST_SANITIZE)
  hf_register(lint/tidy lint ${CMAKE_SOURCE_DIR}/tools/lint/tidy ${CMAKE_BINARY_DIR})
endif()
