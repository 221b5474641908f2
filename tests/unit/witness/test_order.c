/* SPDX-License-Identifier: Apache-2.0 */
/* What a query orders by, as columns of its result. */
#include "witness/witness.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct {
  const char *sql;
  const char *columns; /* from 1; "/" behind them: limited */
} cases[] = {
    {"SELECT a, b FROM t ORDER BY b, a", "2 1"},
    {"SELECT a, b FROM t ORDER BY 2 DESC NULLS FIRST", "2"},
    {"SELECT a, b FROM t ORDER BY B", "2"},
    {"SELECT a, b FROM t", ""},
    {"SELECT a, b FROM t LIMIT 3", ""},
    {"SELECT a, b FROM t ORDER BY a LIMIT 3", "1/"},
    {"SELECT a, b FROM t ORDER BY a LIMIT 10%", "1/"},
    {"SELECT a, b FROM t ORDER BY a OFFSET 3", "1/"},
    {"SELECT a, b FROM t ORDER BY c, a", ""},
    {"SELECT a, b FROM t ORDER BY b, c, a LIMIT 3", "2/"},
    {"SELECT a AS b, b AS x FROM t ORDER BY x", "2"},
    {"SELECT a AS x, b AS x FROM t ORDER BY a", ""},
    {"SELECT t.a, u.a FROM t, t AS u ORDER BY u.a", "2"},
    {"SELECT a, sum(b) FROM t GROUP BY a ORDER BY sum(b), a", "2 1"},
    {"SELECT a, sum(b) AS s FROM t GROUP BY a ORDER BY sum( b )", "2"},
    {"SELECT a, sum(b) FROM t GROUP BY a ORDER BY sum(c)", ""},
    {"SELECT *, a + 1 FROM t ORDER BY a + 1", ""},
    {"SELECT * FROM t ORDER BY c", "3"},
    {"SELECT * FROM t ORDER BY ALL", "1 2 3"},
    {"FROM t ORDER BY 3, 1", "3 1"},
    {"SELECT a FROM t UNION SELECT b FROM t ORDER BY a", "1"},
    {"WITH w AS (SELECT a, b FROM t ORDER BY b) SELECT b, a FROM w ORDER BY a", "2"},
    {"SELECT * FROM (SELECT a FROM t ORDER BY a)", ""},
    {"SELECT a FROM t ORDER BY 'x'", ""},
    {"SELEC", ""},
    {"SELECT no_such FROM t ORDER BY 1", ""},
};

static engine *open_engine(void) {
  engine *e = NULL;
  hf_error error = {0};
  assert_int_equal(engine_open(&(engine_options){.kind = ENGINE_PLANNER}, &e, &error), HF_OK);
  assert_int_equal(engine_execute(e, "CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER)", &error), HF_OK);
  return e;
}

static void order_is_read_as_far_as_it_is_certain(void **state) {
  (void)state;
  engine *e = open_engine();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    arena *a = arena_new();
    compare_options found;
    order_of_query(e, cases[i].sql, a, &found);
    buf text = {0};
    for (size_t c = 0; c < found.n_order_columns; c++) {
      buf_printf(&text, "%s%zu", c == 0 ? "" : " ", found.order_columns[c] + 1);
    }
    buf_text(&text, found.limited ? "/" : "");
    if (strcmp(buf_cstr(&text), cases[i].columns) != 0 || found.ordered) {
      fail_msg("%s\nfound %s, expected %s", cases[i].sql, buf_cstr(&text), cases[i].columns);
    }
    buf_reset(&text);
    arena_free(a);
  }
  engine_close(e);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(order_is_read_as_far_as_it_is_certain)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
