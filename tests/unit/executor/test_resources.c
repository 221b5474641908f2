/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of control groups, and sane answers for this machine. */
#include "executor/resources.h"

#include "scratch.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static scratch root;

static void group_file(const char *dir, const char *name, const char *text) {
  char path[512];
  assert_int_equal(file_make_dirs(scratch_path(&root, dir), NULL), HF_OK);
  snprintf(path, sizeof path, "%s/%s/%s", root.path, dir, name);
  write_text(path, text);
}

static void group_limit_is_the_lowest_upwards(void **state) {
  (void)state;
  scratch_make(&root);
  group_file("a/b", "memory.max", "max\n");
  group_file("a", "memory.max", "1000000\n");
  group_file("small", "memory.max", "77\n");
  assert_true(resources_group_limit("0::/a/b\n", root.path) == 1000000);
  assert_true(resources_group_limit("0::/a/b/none\n", root.path) == 1000000);
  assert_true(resources_group_limit("0::/none\n", root.path) == UINT64_MAX);
  assert_true(resources_group_limit("0::/\n", root.path) == UINT64_MAX);
  group_file(".", "memory.max", "5000\n");
  assert_true(resources_group_limit("0::/\n", root.path) == 5000);
  assert_true(resources_group_limit("0::/a/b", root.path) == 5000);
  assert_true(resources_group_limit("0::/small", root.path) == 77);
  scratch_remove(&root);
}

static void group_limit_of_version_1_is_read(void **state) {
  (void)state;
  scratch_make(&root);
  group_file("memory/x", "memory.limit_in_bytes", "9223372036854771712\n");
  group_file("memory", "memory.limit_in_bytes", "4096\n");
  const char *text = "12:cpu,cpuacct:/x\n5:memory:/x\n1:name=systemd:/x\n";
  assert_true(resources_group_limit(text, root.path) == 4096);
  scratch_remove(&root);
}

static void group_text_that_is_odd_has_no_limit(void **state) {
  (void)state;
  const char *const texts[] = {"", "\n", "0", "0:", "::", "0::", "\n\n0::/../../..\n", "x:y"};
  scratch_make(&root);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    assert_true(resources_group_limit(texts[i], root.path) == UINT64_MAX);
  }
  scratch_remove(&root);
}

static void machine_has_threads_by_affinity_and_memory(void **state) {
  (void)state;
  cpu_set_t before, one;
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  assert_int_equal(resources_threads(), (unsigned)CPU_COUNT(&before));
  size_t core = 0;
  while (!CPU_ISSET(core, &before)) {
    core++;
  }
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  assert_int_equal(resources_threads(), 1);
  assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
  assert_true(resources_memory_bytes() > (uint64_t)16 << 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(group_limit_is_the_lowest_upwards),
      cmocka_unit_test(group_limit_of_version_1_is_read),
      cmocka_unit_test(group_text_that_is_odd_has_no_limit),
      cmocka_unit_test(machine_has_threads_by_affinity_and_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
