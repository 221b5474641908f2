/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps across a wire: what comes back is the same plan with the same columns; chains as long as may be; messages that a
 * peer made up.
 */
#include "support/build_steps.h"
#include "wire/wire.h"

#include "base/mem.h"
#include "base/thread.h"
#include "spark/connect/relations.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int open_case(void **state) {
  plan_case_open(state);
  plan_case *c = *state;
  plan_exec(
      c, "COPY (SELECT i AS k, i % 3 AS g, 'n' || i AS name, [i] AS l, {'a': i} AS s FROM range(5) t(i)) TO "
         "'@/p.parquet'");
  plan_name(c, "v", "FROM '@/p.parquet'");
  plan_name(c, "d", "SELECT 2 AS k, 'w' AS w");
  plan_name(c, "dup", "SELECT 1 AS a, 2 AS b, 3 AS A");
  relation *b = steps_build(c, "d >> alias: b");
  plan_bind(c, "db", b);
  relation_release(b);
  return 0;
}

static relation *through_the_wire(plan_case *c, const relation *r) {
  buf bytes = {0};
  relation *back = NULL;
  static plan_case empty;
  relation_names nothing = plan_names(&empty);
  assert_int_equal(relation_pack(r, &bytes, &c->error), HF_OK);
  if (relation_unpack(bytes.data, bytes.length, c->planner, &nothing, &back, &c->error) != HF_OK) {
    print_message("%s\n", c->error.message);
  }
  buf_reset(&bytes);
  return back;
}

static void steps_packed_come_back_the_same(void **state) {
  static const char *const lines[] = {
      "v >> project: k + 1 AS j | name | upper(name)",
      "v >> project: * | k * 2 AS kk",
      "v >> project: * EXCLUDE (l) | COLUMNS('k') + 1",
      "v >> filter: k > 1 AND name <> ';'",
      "v >> filter: k > 1 | name <> 'x' OR g = 0",
      "v >> limit: ,1 >> limit: 2 >> limit: ,1 >> limit: ,1",
      "v >> with: j = k + 1 | g = k",
      "v >> rename: k = \"odd\" name | g = k",
      "v >> drop: l | s",
      "v >> agg: g | k % 2 AS odd ; count(*) AS n | sum(k)",
      "v >> agg:  ; max(k)",
      "v >> sort: g DESC NULLS FIRST | k ASC | name | k + g NULLS LAST >> limit: 3,1",
      "v >> limit: 2",
      "v >> limit: ,2",
      "v >> distinct",
      "v >> distinct: g | \"name\"",
      "v >> alias: a >> join: db ; a.k = b.k >> project: a.* | b.w >> filter: w = 'w'",
      "v >> left: d ; USING k",
      "v >> semi: d ; USING k >> anti: d ; USING k",
      "v >> cross: d >> drop: w",
      "v >> project: k | name >> unionall: d >> union: d >> exceptall: d >> intersect: d",
      "v >> project: k >> byname: d",
      "v >> filter: k IN (SELECT k FROM d) >> project: k | (SELECT max(k) FROM d) AS m >> filter: m > 0",
      "dup >> filter: b = 2 >> with: c = b",
      "v >> repartition: 8 | name | k",
      "v >> rename: k = a ` \"b.c >> alias: x >> repartition: 2 | a ` \"b.c >> filter: x.g > 0",
  };
  plan_case *c = *state;
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    relation *r = steps_build(c, lines[i]), *back = through_the_wire(c, r);
    if (back == NULL || !relation_equal(r, back) ||
        !schema_equal(relation_columns(r), relation_columns(back))) {
      fail_msg("%s", lines[i]);
    }
    relation_release(r);
    relation_release(back);
  }
}

static void chain_as_long_as_may_be_is_packed(void **state) {
  plan_case *c = *state;
  relation *r = steps_build(c, "v");
  for (size_t i = 0; i < 2400; i++) {
    assert_non_null(r = step_add(c, r, i % 2 == 0 ? "with: k = k + 1" : "filter: k > 0"));
  }
  relation *back = through_the_wire(c, r);
  assert_non_null(back);
  assert_true(relation_equal(r, back));
  relation_release(r);
  relation_release(back);
}

static void file_named_from_a_directory_is_the_same_elsewhere(void **state) {
  static const char *const queries[] = {
      "FROM p.parquet",
      "SELECT p.k FROM 'p.parquet' WHERE p.k > 1",
      "SELECT k FROM \"./p.parquet\" q JOIN 'p.parquet' USING (k)",
      "FROM '*.parquet'",
      "SELECT \"*.parquet\".k FROM '*.parquet'",
      "SELECT count(*) FROM read_parquet('p.parquet', union_by_name = true)",
      "SELECT read_parquet.k FROM read_parquet(['p.parquet', 'p.parquet'])",
      "TABLE 'p.parquet'",
      "DESCRIBE 'p.parquet'",
      "WITH a AS (FROM 'p.parquet') SELECT * FROM a WHERE k IN (SELECT k FROM 'p.parquet')",
  };
  plan_case *c = *state;
  char before[4096];
  assert_non_null(getcwd(before, sizeof before));
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    relation *r = NULL;
    relation_names names = plan_names(c);
    assert_int_equal(chdir(c->dir), 0);
    hf_status status = relation_from_sql(c->planner, queries[i], &names, &r, &c->error);
    assert_int_equal(chdir(before), 0);
    if (status != HF_OK) {
      print_message("%s: %s\n", queries[i], c->error.message);
      continue;
    }
    relation *back = through_the_wire(c, r);
    if (back == NULL || !relation_equal(r, back)) {
      fail_msg("%s", queries[i]);
    }
    const char *wanted = steps_rows(c, r);
    assert_string_equal(steps_rows(c, back), wanted);
    relation_release(back);
    relation_release(r);
  }
  assert_int_equal(chdir(c->dir), 0);
  relation *r = steps_build(c, "v >> filter: k IN (SELECT p.k FROM 'p.parquet')");
  assert_int_equal(chdir(before), 0);
  relation *back = through_the_wire(c, r);
  assert_true(back != NULL && relation_equal(r, back));
  relation_release(back);
  relation_release(r);
}

/* Decoding builds every step anew; then the relation is lowered. */
static void allocation_failing_anywhere_is_an_error(void **state) {
  static const char *const lines[] = {
      "d >> project: * | k + 1 AS j >> filter: j > 1 >> with: q = j * 2 | w = upper('x') >> rename: q = z >> drop: k",
      "d >> alias: x >> join: db ; x.k = b.k >> project: x.* | b.w AS v >> sort: v DESC | k >> limit: 3,1",
      "d >> full: d ; USING k >> agg: k % 2 AS p ; count(*) AS n | (SELECT max(k) FROM d) AS m >> distinct: n",
      "d >> unionall: d >> byname: d >> project: w | (SELECT 1) AS one >> project: COLUMNS('w')",
  };
  plan_case *c = *state;
  plan_case empty = {0};
  relation_names nothing = plan_names(&empty);
  lower_knowledge knowledge = {.context = c};
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    relation *r = steps_build(c, lines[i]);
    buf bytes = {0};
    assert_int_equal(relation_pack(r, &bytes, NULL), HF_OK);
    bool succeeded = false;
    for (uint64_t n = 1; !succeeded; n++) {
      relation *back = NULL;
      buf again = {0};
      hf_error error = {0};
      lowered l;
      mem_fail_after(n);
      arena *a = arena_new();
      hf_status status = a == NULL
                             ? HF_E_OUT_OF_MEMORY
                             : relation_unpack(bytes.data, bytes.length, c->planner, &nothing, &back, &error);
      status = status == HF_OK ? plan_lower(back, &knowledge, a, &l, &error) : status;
      status = status == HF_OK ? relation_pack(back, &again, &error) : status;
      mem_fail_after(0);
      succeeded = status == HF_OK;
      if (!succeeded && status != HF_E_OUT_OF_MEMORY) {
        fail_msg("%s: %s: %s", lines[i], hf_status_name(status), error.message);
      }
      hf_error_reset(&error);
      buf_reset(&again);
      relation_release(back);
      arena_free(a);
    }
    buf_reset(&bytes);
    relation_release(r);
  }
}

/* Packs what a peer says, and gives it to us. */
static hf_status unpack(plan_case *c, const Spark__Connect__Relation *message) {
  uint8_t bytes[1024];
  relation *back = NULL;
  relation_names names = plan_names(c);
  assert_in_range(spark__connect__relation__get_packed_size(message), 1, sizeof bytes);
  size_t length = spark__connect__relation__pack(message, bytes);
  hf_status status = relation_unpack(bytes, length, c->planner, &names, &back, &c->error);
  relation_release(back);
  return status;
}

static void message_of_a_peer_is_checked_as_a_users_text_is(void **state) {
  plan_case *c = *state;
  Spark__Connect__Expression__ExpressionString text = SPARK__CONNECT__EXPRESSION__EXPRESSION_STRING__INIT;
  Spark__Connect__Expression condition = SPARK__CONNECT__EXPRESSION__INIT;
  Spark__Connect__Filter filter = SPARK__CONNECT__FILTER__INIT;
  Spark__Connect__Relation r = SPARK__CONNECT__RELATION__INIT, input = SPARK__CONNECT__RELATION__INIT;
  Spark__Connect__SQL sql = SPARK__CONNECT__SQL__INIT;
  condition.expr_type_case = SPARK__CONNECT__EXPRESSION__EXPR_TYPE_EXPRESSION_STRING;
  condition.expression_string = &text;
  r.rel_type_case = SPARK__CONNECT__RELATION__REL_TYPE_FILTER;
  r.filter = &filter;
  input.rel_type_case = SPARK__CONNECT__RELATION__REL_TYPE_SQL;
  input.sql = &sql;
  assert_int_equal(unpack(c, &r), HF_E_PROTOCOL); /* no condition */
  filter.condition = &condition;
  assert_int_equal(unpack(c, &r), HF_E_PROTOCOL); /* no text */
  text.expression = "k > 1";
  assert_int_equal(unpack(c, &r), HF_E_PROTOCOL); /* no input */
  filter.input = &input;
  sql.query = "FROM v";
  assert_int_equal(unpack(c, &r), HF_E_UNSUPPORTED); /* nobody tells its columns */
  assert_non_null(strstr(c->error.message, "columns"));
}

/* Bytes of a peer are decoded on a planning stack. */
static void *on_large_stack(void *context) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_packed_come_back_the_same),
      cmocka_unit_test(chain_as_long_as_may_be_is_packed),
      cmocka_unit_test(file_named_from_a_directory_is_the_same_elsewhere),
      cmocka_unit_test(allocation_failing_anywhere_is_an_error),
      cmocka_unit_test(message_of_a_peer_is_checked_as_a_users_text_is),
  };
  *(int *)context = cmocka_run_group_tests(tests, open_case, plan_case_close);
  return NULL;
}

int main(void) {
  pthread_t thread;
  int failed = 1;
  if (thread_start(&thread, THREAD_PLANNING_STACK_BYTES, on_large_stack, &failed, "test", NULL) == HF_OK) {
    pthread_join(thread, NULL);
  }
  return failed;
}
