/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of DuckDB come back with a code, a clean message, a position in the caller's text and a hint. */
#include "store.h"

typedef enum how { AS_DESCRIBED, AS_TASK, AS_PARSED } how;

/* '@' in a text stands for the test's directory. */
typedef struct expectation {
  how how;
  const char *sql;
  hf_status code;
  int64_t position;           /* -1: not known, or not looked at */
  const char *message, *hint; /* parts of them; NULL: not looked at */
} expectation;

static const expectation expectations[] = {
    {AS_PARSED, "SELECT 1 +", HF_E_SYNTAX, 10, "syntax error at end of input", "at the position"},
    {AS_PARSED, "SELECT 1; SELCT 2", HF_E_SYNTAX, 10, "syntax error at or near \"SELCT\"", NULL},
    {AS_PARSED, "ATTACH 'x'", HF_E_STATEMENT_REFUSED, -1, NULL, NULL},
    {AS_DESCRIBED, "SELECT (1", HF_E_SYNTAX, 9, NULL, NULL},
    {AS_DESCRIBED, "SELECT depa_delay FROM (SELECT 1 AS dep_delay)", HF_E_COLUMN_NOT_FOUND, 7,
     "no column has this name: depa_delay", "did you mean \"dep_delay\"?"},
    {AS_TASK, "SELECT 1,\n depa_delay FROM (SELECT 1 AS dep_delay)", HF_E_COLUMN_NOT_FOUND, 11, NULL,
     "dep_delay"},
    {AS_DESCRIBED, "SELECT 'ä', depa FROM (SELECT 1 AS dep)", HF_E_COLUMN_NOT_FOUND, 13, NULL, "\"dep\""},
    {AS_DESCRIBED, "SELECT u.nope FROM range(3) u(a)", HF_E_COLUMN_NOT_FOUND, 7, "nope",
     "did you mean \"a\"?"},
    {AS_DESCRIBED, "SELECT * EXCLUDE (z) FROM range(3)", HF_E_COLUMN_NOT_FOUND, -1, "\"z\"", NULL},
    {AS_DESCRIBED, "SELECT t.x FROM range(3) u", HF_E_TABLE_NOT_FOUND, 7, "\"t\"", "did you mean \"u\"?"},
    {AS_DESCRIBED, "SELECT * FROM nope", HF_E_TABLE_NOT_FOUND, 14, "name: nope", "a view of this session"},
    {AS_DESCRIBED, "SELECT sbstr('a', 1)", HF_E_FUNCTION_NOT_FOUND, 7, "name: sbstr",
     "did you mean \"substr\"?"},
    {AS_DESCRIBED, "SELECT substr()", HF_E_FUNCTION_NOT_FOUND, 7, "arguments: substr()",
     "substr(VARCHAR, BIGINT)"},
    {AS_DESCRIBED, "FROM foo(1)", HF_E_FUNCTION_NOT_FOUND, 5, "name: foo", "check the name"},
    {AS_DESCRIBED, "SELECT sum(sum(1))", HF_E_BIND, 11, "aggregate function calls cannot be nested", NULL},
    {AS_DESCRIBED, "SELECT a FROM (SELECT 1 a) x, (SELECT 2 a) y", HF_E_BIND, 7, "ambiguous reference", NULL},
    {AS_DESCRIBED, "SELECT ?", HF_E_BIND, -1, "parameters", "write the values"},
    {AS_DESCRIBED, "SET threads = 1", HF_E_STATEMENT_REFUSED, -1, NULL, NULL},
    {AS_DESCRIBED, "SELECT 1; SELECT 2", HF_E_UNSUPPORTED, -1, NULL, "give one statement"},
    {AS_TASK, "SELECT CAST('a' || range AS INTEGER) FROM range(10)", HF_E_CAST, 7,
     "could not convert string 'a0'", "TRY_CAST"},
    {AS_TASK, "SELECT 300::TINYINT", HF_E_CAST, 10, "out of range", NULL},
    {AS_TASK, "SELECT to_days(999999999999)", HF_E_CAST, -1, NULL, NULL},
    {AS_TASK, "SELECT 9223372036854775807 + range FROM range(2, 3)", HF_E_OVERFLOW, -1,
     "overflow in addition", "wider type"},
    {AS_TASK, "SELECT bitstring_agg(CAST(random() AS INTEGER)) FROM range(3)", HF_E_UNSUPPORTED, -1,
     "bitstring_agg needs its bounds", "bitstring_agg(x, min, max)"},
    {AS_TASK, "SELECT error('Boom')", HF_E_QUERY, -1, "boom", NULL},
    {AS_TASK, "SELECT (SELECT range FROM range(3))", HF_E_QUERY, -1, "more than one row returned", NULL},
    {AS_TASK, "SELECT * FROM read_csv('@/none.csv')", HF_E_FILE_NOT_FOUND, 14, "none.csv", "check the path"},
    {AS_TASK, "SELECT * FROM read_parquet('@/none.parquet')", HF_E_FILE_NOT_FOUND, -1, "none.parquet", NULL},
    {AS_TASK, "SELECT * FROM '@/none*.json'", HF_E_FILE_NOT_FOUND, -1, "none*.json", NULL},
    {AS_TASK, "SELECT * FROM read_csv('/etc/passwd')", HF_E_PATH_REFUSED, 14, "/etc/passwd", "--allow-path"},
    {AS_TASK, "SELECT * FROM read_csv('@/../../etc/passwd')", HF_E_PATH_REFUSED, -1, NULL, NULL},
    {AS_TASK, "SELECT * FROM read_parquet('@/cut.parquet')", HF_E_FILE_FORMAT, -1, "cut.parquet",
     "check the file"},
    {AS_TASK, "SELECT * FROM read_parquet('@/empty')", HF_E_FILE_FORMAT, -1, "too small to be a Parquet file",
     NULL},
    {AS_TASK,
     "SELECT * FROM read_csv('@/bad.csv', auto_detect = false, header = true, "
     "columns = {'a': 'INTEGER', 'b': 'INTEGER'})",
     HF_E_FILE_FORMAT, -1,
     "bad CSV row: error when converting column \"a\". Could not convert string \"x\" to 'INTEGER', line 4",
     NULL},
    {AS_TASK,
     "SELECT * FROM read_csv('@/wide.csv', auto_detect = false, header = true, "
     "columns = {'a': 'VARCHAR', 'b': 'VARCHAR'})",
     HF_E_FILE_FORMAT, -1, "bad CSV row: expected Number of Columns: 2 Found: 3, line 3 of /tmp/", NULL},
    {AS_TASK, "SELECT * FROM read_json('@/bad.json')", HF_E_FILE_FORMAT, -1, "malformed JSON in file", NULL},
    {AS_TASK, "SELECT '{'::JSON", HF_E_CAST, -1, "malformed JSON", NULL},
    {AS_TASK, "SELECT * FROM 's3://bucket/x.parquet'", HF_E_PATH_REFUSED, -1, NULL, NULL},
};

static const char *with_dir(const char *sql, const char *dir, arena *a) {
  const char *at = strchr(sql, '@');
  return at == NULL ? sql : arena_printf(a, "%.*s%s%s", (int)(at - sql), sql, dir, at + 1);
}

static hf_status try(rig *r, const expectation *x, arena *a, hf_error *error) {
  const char *sql = with_dir(x->sql, r->dir, a), *json;
  schema columns;
  if (x->how == AS_PARSED) {
    return engine_parse(r->slot, sql, a, &json, error);
  }
  if (x->how == AS_DESCRIBED) {
    return engine_describe(r->slot, sql, a, &columns, error);
  }
  store s;
  store_init(&s);
  engine_task task = store_task(&s, sql);
  engine_task_stats stats;
  hf_status status = engine_run_task(r->slot, &task, &stats, error);
  assert_int_equal(s.opened, s.discarded);
  store_reset(&s);
  return status;
}

static bool is_clean(const char *message) {
  size_t length = message == NULL ? 0 : strlen(message);
  return length > 0 && message[length - 1] != '.' && strchr(message, '\n') == NULL &&
         strstr(message, "LINE 1") == NULL;
}

static bool has(const char *text, const char *part) {
  return part == NULL || (text != NULL && strstr(text, part) != NULL);
}

static void check(const expectation *x, hf_status status, const hf_error *error) {
  if (status != x->code || error->code != x->code || !is_clean(error->message) ||
      (x->position >= 0 && error->position != x->position) || !has(error->message, x->message) ||
      !has(error->hint, x->hint)) {
    fail_msg("%s\n  %s at %lld\n  message: %s\n  hint: %s", x->sql, hf_status_name(status),
             (long long)error->position, error->message, error->hint);
  }
}

static void errors_of_each_kind_are_told_apart(void **state) {
  (void)state;
  rig r;
  rig_open(&r, 2);
  arena *a = arena_new();
  rig_write(&r, "cut.parquet", "PAR1 and so on, but no footer", a);
  rig_write(&r, "empty", "", a);
  rig_write(&r, "bad.csv", "a,b\n1,2\n3,4\nx,6\n", a);
  rig_write(&r, "wide.csv", "a,b\n1,2\n3,4,5\n", a);
  rig_write(&r, "bad.json", "{\"a\": 1}\n{\"a\": ", a);
  for (size_t i = 0; i < sizeof expectations / sizeof expectations[0]; i++) {
    hf_error error = {0};
    hf_status status = try(&r, &expectations[i], a, &error);
    check(&expectations[i], status, &error);
    hf_error_reset(&error);
  }
  char *one = rig_render(r.slot, "SELECT 1", 1, NULL, 0); /* none of them shut the instance */
  assert_string_equal(one, "1\n");
  free(one);
  arena_free(a);
  rig_close(&r);
}

/* ------------------------------------------------------------------- resources */

/* 150 MB to sort. */
static const char greedy[] =
    "SELECT md5(range::VARCHAR) || repeat('x', 60) AS s FROM range(1500000) ORDER BY s";

static hf_status run_greedy(rig *r, engine_options *options, hf_error *error) {
  assert_ok(engine_open(options, &r->slot, ok_error));
  store s;
  store_init(&s);
  engine_task task = store_task(&s, greedy);
  engine_task_stats stats;
  hf_status status = engine_run_task(r->slot, &task, &stats, error);
  assert_int_equal(s.opened, s.discarded);
  store_reset(&s);
  return status;
}

static void memory_that_is_too_small_is_said(void **state) {
  (void)state;
  rig r;
  hf_error error = {0};
  rig_make_dirs(&r);
  engine_options options = rig_options(&r, 2, (uint64_t)24 << 20);
  options.spill_dir = NULL;
  assert_int_equal(run_greedy(&r, &options, &error), HF_E_OUT_OF_MEMORY);
  assert_non_null(strstr(error.hint, "--memory"));
  hf_error_reset(&error);
  rig_close(&r);
}

static void disk_that_is_too_small_is_said(void **state) {
  (void)state;
  rig r;
  hf_error error = {0};
  rig_make_dirs(&r);
  engine_options options = rig_options(&r, 2, (uint64_t)64 << 20);
  engine_setting setting = {"max_temp_directory_size", "1MB"};
  options.settings = &setting;
  options.n_settings = 1;
  assert_int_equal(run_greedy(&r, &options, &error), HF_E_DISK_FULL);
  hf_error_reset(&error);
  engine_close(r.slot);
  r.slot = NULL;
  assert_int_equal(rig_entries(r.spill_dir), 0);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(errors_of_each_kind_are_told_apart),
      cmocka_unit_test(memory_that_is_too_small_is_said),
      cmocka_unit_test(disk_that_is_too_small_is_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
