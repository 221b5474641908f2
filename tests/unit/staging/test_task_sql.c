/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a task's SQL. */
#include "staging/staging.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const data_type bigint = {.kind = TYPE_BIGINT};
static const char *const values[] = {"x", "it's"};
static const data_type kind = {.kind = TYPE_ENUM, .n_names = 2, .names = values};
static const data_type *const children[] = {&kind};
static const data_type list = {.kind = TYPE_LIST, .n_children = 1, .children = children};
static const column columns[] = {{"a \"b\"", &bigint}, {"", &kind}, {"l", &list}};

static void assert_sql(const stage_input *input, const task_input *given, const char *expected) {
  stage_piece pieces[] = {{"SELECT * FROM ", 0}, {NULL, 0}, {" AS t, ", 0}, {NULL, 0}};
  stage_plan plan = {.n_pieces = 4, .pieces = pieces, .n_inputs = 1, .inputs = input};
  task_spec spec = {.n_inputs = 1, .inputs = given};
  buf sql = {0}, whole = {0};
  assert_int_equal(task_sql_build(&plan, &spec, &sql, NULL), HF_OK);
  buf_printf(&whole, "SELECT * FROM %s AS t, %s", expected, expected);
  assert_string_equal(buf_cstr(&sql), buf_cstr(&whole));
  buf_reset(&sql);
  buf_reset(&whole);
}

static void sql_of_blocks_names_columns_and_casts_enums(void **state) {
  (void)state;
  static const block_ref ref = {.session = {"x"}};
  stage_input input = {.kind = STAGE_INPUT_BLOCKS, .columns = {3, columns}};
  task_input given = {.n_blocks = 1, .blocks = &ref};
  assert_sql(&input, &given,
             "(SELECT c0 AS \"a \"\"b\"\"\", CAST(c1 AS ENUM('x', 'it''s')) AS c1, "
             "CAST(c2 AS ENUM('x', 'it''s')[]) AS \"l\" FROM hf_blocks('0'))");
}

static void sql_of_no_blocks_is_a_relation_without_rows(void **state) {
  (void)state;
  stage_input input = {.kind = STAGE_INPUT_BLOCKS, .columns = {1, columns}};
  task_input given = {0};
  assert_sql(&input, &given, "(SELECT CAST(NULL AS BIGINT) AS \"a \"\"b\"\"\" WHERE false)");
}

static void sql_of_parts_of_files_is_a_scan_each(void **state) {
  (void)state;
  static const char *const files[] = {"/a", "/b", "/c", "/d"};
  static const row_range ranges[] = {{10, 5}, {0, 0}, {0, 0}, {0, 7}};
  stage_input input = {.kind = STAGE_INPUT_FILES, .reader = "\x04read_parquet(\x01)\x05"};
  task_input given = {.n_files = 4, .files = files, .ranges = ranges};
  assert_sql(&input, &given,
             "(SELECT * FROM (SELECT * FROM read_parquet(['/a']) WHERE file_row_number BETWEEN 10 AND 14)"
             " UNION ALL SELECT * FROM read_parquet(['/b', '/c'])"
             " UNION ALL SELECT * FROM (SELECT * FROM read_parquet(['/d']) WHERE file_row_number < 7))");
  given.ranges = NULL;
  assert_sql(&input, &given, "read_parquet(['/a', '/b', '/c', '/d'])");
}

static void sql_under_lack_of_memory_says_so(void **state) {
  (void)state;
  buf sql = {.failed = true};
  stage_piece piece = {"SELECT 1", 0};
  stage_plan plan = {.n_pieces = 1, .pieces = &piece};
  task_spec spec = {0};
  assert_int_equal(task_sql_build(&plan, &spec, &sql, NULL), HF_E_OUT_OF_MEMORY);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sql_of_blocks_names_columns_and_casts_enums),
      cmocka_unit_test(sql_of_no_blocks_is_a_relation_without_rows),
      cmocka_unit_test(sql_of_parts_of_files_is_a_scan_each),
      cmocka_unit_test(sql_under_lack_of_memory_says_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
