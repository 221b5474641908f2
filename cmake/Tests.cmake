# SPDX-License-Identifier: Apache-2.0
# Tests, found by glob and run by CTest, each a process with a deadline of its own:
#   tests/unit/<folder>/test_*.c  cmocka, mirrors src/<folder>   label unit
#   tests/e2e/test_*.c            cmocka, whole queries          label e2e
#   tests/chaos/test_*.c          cmocka, many random actions    label chaos
#   tests/cli/*.sh, *.py          any executable script          label cli
#   tests/golden/<suite>/*.plan   staged plans as text           label golden
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
  set(HF_TEST_SECONDS 1200) # sanitizers slow our code down several times
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
