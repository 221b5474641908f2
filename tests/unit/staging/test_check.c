/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a graph: stages made by hand, bound by a planner. */
#include "staging/staging.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static const data_type bigint = {.kind = TYPE_BIGINT};
static const column source_column[] = {{"a", &bigint}};
static const schema source_schema = {1, source_column};
static const column result_column[] = {{"c0", &bigint}};
static const schema result = {1, result_column};

typedef struct rig {
  arena *memory;
  engine *planner;
  char why[200];
} rig;

static void rig_open(rig *r) {
  *r = (rig){.memory = arena_new()};
  assert_int_equal(engine_open(&(engine_options){.kind = ENGINE_PLANNER}, &r->planner, NULL), HF_OK);
}

static void rig_close(rig *r) {
  engine_close(r->planner);
  arena_free(r->memory);
}

static const schema *columns_of(const void *context, const char *id) {
  assert_string_equal(id, "0");
  return context;
}

/* A stage that reads the source by `head` and, with partitions, a stage that gathers it. */
static void check(rig *r, const char *head, const schema *columns, bool all_one) {
  const cut_piece first[] = {{head, 0}, {NULL, 0}}, last[] = {{"SELECT c0 FROM ", 0}, {NULL, 0}};
  const cut_input of_source = {.share = CUT_SPLIT, .source_id = "0"},
                  of_stage = {.share = CUT_PARTITION, .is_stage = true, .stage = 0};
  const cut_stage stages[] = {{.n_pieces = 2,
                               .pieces = first,
                               .n_inputs = 1,
                               .inputs = &of_source,
                               .partitions = 3,
                               .columns = result,
                               .one_task = all_one,
                               .why_one = all_one ? "it is small" : ""},
                              {.n_pieces = 2,
                               .pieces = last,
                               .n_inputs = 1,
                               .inputs = &of_stage,
                               .partitions = 1,
                               .columns = result,
                               .one_task = true,
                               .why_one = ""}};
  const cut_graph graph = {.n_stages = 2, .stages = stages};
  const staging_check options = {.planner = r->planner,
                                 .graph = &graph,
                                 .columns = columns,
                                 .source_columns = columns_of,
                                 .context = &source_schema,
                                 .memory = r->memory};
  const char *why = NULL;
  assert_int_equal(staging_check_graph(&options, &why, NULL), HF_OK);
  strncpy(r->why, why == NULL ? "" : why, sizeof r->why - 1);
}

static void check_of_stages_that_give_what_the_plan_says_finds_nothing(void **state) {
  (void)state;
  rig r;
  rig_open(&r);
  check(&r, "SELECT a, CAST(a % 3 AS UINTEGER) FROM ", &result, false);
  assert_string_equal(r.why, "");
  rig_close(&r);
}

static void check_of_a_text_that_does_not_bind_says_which_stage(void **state) {
  (void)state;
  rig r;
  rig_open(&r);
  check(&r, "SELECT b, CAST(b % 3 AS UINTEGER) FROM ", &result, false);
  assert_memory_equal(r.why, "stage 1 does not bind: ", strlen("stage 1 does not bind: "));
  rig_close(&r);
}

static void check_of_other_types_says_so(void **state) {
  (void)state;
  rig r;
  rig_open(&r);
  check(&r, "SELECT CAST(a AS INTEGER), CAST(a % 3 AS UINTEGER) FROM ", &result, false);
  assert_string_equal(r.why, "stage 1 gives other types than the plan says");
  check(&r, "SELECT a, a % 3 FROM ", &result, false); /* the partition is a UINTEGER */
  assert_string_equal(r.why, "stage 1 gives other types than the plan says");
  check(&r, "SELECT a FROM ", &result, false);
  assert_string_equal(r.why, "stage 1 gives other types than the plan says");
  static const data_type integer = {.kind = TYPE_INTEGER};
  const column other[] = {{"x", &integer}};
  check(&r, "SELECT a, CAST(a % 3 AS UINTEGER) FROM ", &(schema){1, other}, false);
  assert_string_equal(r.why, "the last stage gives other types than the query");
  rig_close(&r);
}

static void check_of_single_tasks_only_says_why(void **state) {
  (void)state;
  rig r;
  rig_open(&r);
  check(&r, "SELECT a, CAST(a % 3 AS UINTEGER) FROM ", &result, true);
  assert_string_equal(r.why, "it is small");
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest cases[] = {
      cmocka_unit_test(check_of_stages_that_give_what_the_plan_says_finds_nothing),
      cmocka_unit_test(check_of_a_text_that_does_not_bind_says_which_stage),
      cmocka_unit_test(check_of_other_types_says_so),
      cmocka_unit_test(check_of_single_tasks_only_says_why),
  };
  return cmocka_run_group_tests(cases, NULL, NULL);
}
