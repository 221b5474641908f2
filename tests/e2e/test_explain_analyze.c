/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a query did: EXPLAIN ANALYZE as a statement and by the C API, and the
 * breakdown of an action as rows, as text and as JSON.
 */
#include "support/api_case.h"
#include "support/oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ftw.h>
#include <json.h>
#include <unistd.h>

static const char *text(const api_case *c, const char *sql) {
  static char out[1024];
  const char *at = strchr(sql, '@');
  assert_non_null(at);
  snprintf(out, sizeof out, "%.*s%s%s", (int)(at - sql), sql, c->dir, at + 1);
  return out;
}

/* 10,000 rows in groups of 2,048. */
static void write_parquet(const api_case *c) {
  oracle *plain = oracle_open();
  assert_null(
      oracle_run(plain, text(c, "COPY (SELECT i AS x, i % 7 AS g FROM range(10000) t(i)) TO '@/p.parquet' "
                                "(ROW_GROUP_SIZE 2048)")));
  oracle_close(plain);
}

/* What a breakdown's rows say together. */
typedef struct sums {
  uint32_t stages, tasks, attempts, failed, fills, shared;
  uint64_t source_rows, source_bytes, block_rows, held_rows, rows, last_rows;
  hf_status status; /* of the last attempt that failed */
} sums;

static void add_stage(void *context, const hf_stage_profile *stage) {
  sums *s = context;
  assert_true(stage->stage > 0);
  assert_non_null(stage->sql);
  assert_true((stage->why_one_task != NULL) == (stage->tasks == 1));
  s->stages++;
  s->tasks += stage->tasks;
  s->fills += stage->held != NULL ? 1 : 0;
  s->shared += stage->reads > 1 ? 1 : 0;
  s->source_rows += stage->amounts.source_rows;
  s->source_bytes += stage->amounts.source_bytes;
  s->block_rows += stage->amounts.block_rows;
  s->held_rows += stage->amounts.held_rows;
  s->last_rows = stage->amounts.rows;
}

static void add_attempt(void *context, const hf_attempt_profile *attempt) {
  sums *s = context;
  assert_true(attempt->is_over && attempt->is_local && attempt->task > 0 && attempt->attempt > 0);
  s->attempts++;
  s->rows += attempt->amounts.rows;
  if (attempt->status != HF_OK) {
    s->failed++;
    s->status = attempt->status;
  }
}

static sums sums_of(const hf_breakdown *breakdown) {
  sums s = {0};
  hf_breakdown_stages(breakdown, add_stage, &s);
  hf_breakdown_attempts(breakdown, add_attempt, &s);
  return s;
}

/* Runs and drops the rows. */
static hf_breakdown *ran(api_case *c, const char *sql, hf_status expected) {
  hf_df *df = api_sql(c, sql);
  hf_breakdown *breakdown = NULL;
  struct ArrowArrayStream stream;
  hf_error_reset(&c->error);
  assert_int_equal(hf_df_collect(df, &(hf_action_options){.breakdown = &breakdown}, &stream, &c->error),
                   expected);
  if (expected == HF_OK) {
    stream.release(&stream);
  }
  hf_df_free(df);
  return breakdown;
}

static void breakdown_has_rows_and_bytes_of_each_task(void **state) {
  api_case *c = *state;
  write_parquet(c);
  api_run(c, "SET tasks = 3");
  hf_breakdown *breakdown = ran(c, text(c, "SELECT g, count(*) FROM '@/p.parquet' GROUP BY g"), HF_OK);
  sums s = sums_of(breakdown);
  assert_int_equal(s.stages, 2);
  assert_int_equal(s.attempts, 6);
  assert_int_equal(s.failed, 0);
  assert_int_equal(s.source_rows, 10000);
  assert_int_equal(s.block_rows, 21); /* seven groups of each task */
  assert_int_equal(s.rows, 28);
  assert_int_equal(s.last_rows, 7);
  FILE *file = fopen(text(c, "@/p.parquet"), "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  assert_in_range(s.source_bytes, ftell(file) - 3, ftell(file)); /* each part is rounded down */
  fclose(file);
  hf_breakdown_free(breakdown);
}

static void statement_gives_the_graph_with_what_happened(void **state) {
  api_case *c = *state;
  write_parquet(c);
  api_run(c, "SET tasks = 3");
  hf_df *df = api_sql(c, text(c, "EXPLAIN ANALYZE SELECT g, count(*) FROM '@/p.parquet' GROUP BY g"));
  char *plan = api_rows(c, df, NULL);
  assert_non_null(strstr(plan, "== Holdfast plan, as it ran =="));
  assert_non_null(strstr(plan, "stage 1: scan, partial aggregate: 3 tasks, 3 partitions, not ordered\n"));
  assert_non_null(strstr(plan, "input 0: read_parquet 1 file, 10,000 rows (exact)"));
  assert_non_null(strstr(plan, "  ran: 3 tasks in "));
  assert_non_null(strstr(plan, "; read 10,000 rows ("));
  assert_non_null(strstr(plan, "    task 3: "));
  assert_non_null(strstr(plan, "input 0: stage 1, a partition each"));
  assert_non_null(strstr(plan, "2 stages, 6 tasks, 6 attempts, 0 of them failed\n"));
  assert_non_null(strstr(plan, "result: 7 rows ("));
  free(plan);
  hf_df_free(df);
  api_fails(c, "EXPLAIN ANALYZE SELECT nope", HF_E_COLUMN_NOT_FOUND);
  api_fails(c, "EXPLAIN ANALYZE SELECT CAST('x' AS INTEGER) FROM range(3)", HF_E_CAST);
  api_fails(c, "EXPLAIN ANALYZE DROP VIEW v", HF_E_SYNTAX);
}

static void api_gives_the_same_text_and_a_profile(void **state) {
  api_case *c = *state;
  hf_df *df = api_sql(c, "SELECT i FROM range(10) t(i)");
  hf_profile profile;
  hf_breakdown *breakdown = NULL;
  hf_action_options options = {.profile = &profile, .breakdown = &breakdown};
  char *plan = NULL, *again = NULL;
  assert_int_equal(hf_df_explain_analyze(df, &options, &plan, &c->error), HF_OK);
  assert_int_equal(profile.result_rows, 10);
  assert_int_equal(hf_breakdown_text(breakdown, &again, &c->error), HF_OK);
  assert_string_equal(plan, again);
  assert_non_null(strstr(plan, "stage 1: one task (fits one slot)"));
  assert_non_null(strstr(plan, "1 stage, 1 task, 1 attempt, 0 of them failed"));
  hf_text_free(plan);
  hf_text_free(again);
  hf_breakdown_free(breakdown);
  hf_df_free(df);
  assert_int_equal(hf_df_explain_analyze(NULL, NULL, &plan, NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_breakdown_json(NULL, &plan, NULL), HF_E_INVALID_ARGUMENT);
  hf_breakdown_free(NULL);
}

static void text_tells_a_held_result_computed_then_hit(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE LAZY TABLE held AS SELECT i AS x FROM range(1000) t(i)");
  hf_breakdown *first = ran(c, "SELECT sum(x) FROM held", HF_OK);
  hf_breakdown *second = ran(c, "SELECT sum(x) FROM held", HF_OK);
  char *plan = NULL;
  assert_int_equal(hf_breakdown_text(first, &plan, NULL), HF_OK);
  assert_non_null(strstr(plan, "CachedRead [computed, generation 1] held 1,000 rows"));
  assert_non_null(strstr(plan, "    stage 1: one task (")); /* of the fill, below the input */
  hf_text_free(plan);
  assert_int_equal(hf_breakdown_text(second, &plan, NULL), HF_OK);
  assert_non_null(strstr(plan, "CachedRead [hit, generation 1] held 1,000 rows"));
  hf_text_free(plan);
  sums s = sums_of(first);
  assert_int_equal(s.stages, 2);
  assert_int_equal(s.fills, 1);
  assert_int_equal(s.held_rows, 1000);
  s = sums_of(second);
  assert_int_equal(s.stages, 1);
  assert_int_equal(s.fills, 0);
  hf_breakdown_free(first);
  hf_breakdown_free(second);
}

static int lose_block(const char *path, const struct stat *about, int kind, struct FTW *at) {
  (void)about;
  (void)at;
  size_t length = strlen(path);
  return kind == FTW_F && length > 6 && strcmp(path + length - 6, ".arrow") == 0 ? unlink(path) : 0;
}

static void attempts_of_an_abandoned_plan_are_counted(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE TABLE held AS SELECT i AS x FROM range(1000) t(i)");
  assert_int_equal(nftw(c->work_dir, lose_block, 8, FTW_PHYS), 0);
  hf_breakdown *breakdown = ran(c, "SELECT sum(x) FROM held", HF_OK);
  sums s = sums_of(breakdown);
  assert_int_equal(s.failed, 1);
  assert_int_equal(s.status, HF_E_BLOCK_MISSING);
  assert_int_equal(s.attempts, 3); /* that one, the fill, and the one that read it */
  char *plan = NULL;
  assert_int_equal(hf_breakdown_text(breakdown, &plan, NULL), HF_OK);
  assert_non_null(strstr(plan, "note: planned again after stage 1: a block of a held result was lost"));
  assert_non_null(strstr(plan, "failed with BLOCK_MISSING"));
  assert_non_null(strstr(plan, "3 attempts, 1 of them failed"));
  hf_text_free(plan);
  hf_breakdown_free(breakdown);
}

static void breakdown_of_a_failed_action_tells_its_attempts(void **state) {
  api_case *c = *state;
  hf_breakdown *breakdown = ran(c, "SELECT CAST('x' || i AS INTEGER) FROM range(3) t(i)", HF_E_CAST);
  sums s = sums_of(breakdown);
  assert_int_equal(s.attempts, 1);
  assert_int_equal(s.failed, 1);
  assert_int_equal(s.status, HF_E_CAST);
  char *json = NULL;
  assert_int_equal(hf_breakdown_json(breakdown, &json, NULL), HF_OK);
  assert_non_null(strstr(json, "\"error\":\"CAST\""));
  hf_text_free(json);
  hf_breakdown_free(breakdown);
  hf_df *df = api_sql(c, "SELECT 1");
  hf_session_close(c->session);
  c->session = NULL;
  struct ArrowArrayStream stream;
  hf_breakdown *none = (hf_breakdown *)c; /* whatever lay there */
  assert_int_equal(hf_df_collect(df, &(hf_action_options){.breakdown = &none}, &stream, NULL),
                   HF_E_SESSION_CLOSED);
  assert_null(none);
  hf_df_free(df);
}

static struct json_object *member(struct json_object *of, const char *key) {
  struct json_object *value = NULL;
  assert_true(json_object_object_get_ex(of, key, &value));
  return value;
}

static void json_has_stages_tasks_and_attempts(void **state) {
  api_case *c = *state;
  write_parquet(c);
  api_run(c, "SET tasks = 2");
  hf_breakdown *breakdown =
      ran(c, text(c, "SELECT g AS \"a \"\"b\"\"\t\", count(*) FROM '@/p.parquet' GROUP BY g"), HF_OK);
  char *json = NULL;
  assert_int_equal(hf_breakdown_json(breakdown, &json, &c->error), HF_OK);
  assert_null(strchr(json, '\n'));
  struct json_object *root = json_tokener_parse(json);
  assert_non_null(root);
  assert_int_equal(json_object_get_int64(member(root, "result_rows")), 7);
  struct json_object *stages = member(root, "stages");
  assert_int_equal(json_object_array_length(stages), 2);
  struct json_object *first = json_object_array_get_idx(stages, 0);
  assert_int_equal(json_object_get_int64(member(first, "source_rows")), 10000);
  assert_string_equal(json_object_get_string(member(first, "what")), "scan, partial aggregate");
  struct json_object *tasks = member(first, "tasks");
  assert_int_equal(json_object_array_length(tasks), 2);
  struct json_object *attempts = json_object_array_get_idx(tasks, 1);
  assert_int_equal(json_object_array_length(attempts), 1);
  struct json_object *attempt = json_object_array_get_idx(attempts, 0);
  assert_string_equal(json_object_get_string(member(attempt, "end")), "finished");
  assert_true(json_object_get_int64(member(attempt, "run_us")) > 0);
  struct json_object *input = json_object_array_get_idx(member(first, "inputs"), 0);
  assert_string_equal(json_object_get_string(member(input, "how")), "split among the tasks");
  json_object_put(root);
  hf_text_free(json);
  hf_breakdown_free(breakdown);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open_two_slots, api_case_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(breakdown_has_rows_and_bytes_of_each_task), CASE(statement_gives_the_graph_with_what_happened),
      CASE(api_gives_the_same_text_and_a_profile),     CASE(text_tells_a_held_result_computed_then_hit),
      CASE(attempts_of_an_abandoned_plan_are_counted), CASE(breakdown_of_a_failed_action_tells_its_attempts),
      CASE(json_has_stages_tasks_and_attempts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
