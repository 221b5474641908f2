/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/pivot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct gap_row {
  const char *sql;
  const char *gaps; /* values_sql of each, a line each; NULL: there is none */
  const char *cut;  /* the text with # in the place of each gap */
} gap_row;

static const gap_row ROWS[] = {
    {"PIVOT t ON a USING sum(v)",
     "SELECT DISTINCT CAST((a) AS VARCHAR) FROM t WHERE (a) IS NOT NULL ORDER BY 1\n",
     "PIVOT t ON a# USING sum(v)"},
    {"pivot (SELECT * FROM t) AS u ON a + 1 , f(b, c) GROUP BY g;",
     "SELECT DISTINCT CAST((a + 1) AS VARCHAR) FROM (SELECT * FROM t) AS u WHERE (a + 1) IS NOT NULL ORDER BY 1\n"
     "SELECT DISTINCT CAST((f(b, c)) AS VARCHAR) FROM (SELECT * FROM t) AS u WHERE (f(b, c)) IS NOT NULL ORDER BY 1\n",
     "pivot (SELECT * FROM t) AS u ON a + 1# , f(b, c)# GROUP BY g;"},
    {"PIVOT t ON a IN (1, 2), b",
     "SELECT DISTINCT CAST((b) AS VARCHAR) FROM t WHERE (b) IS NOT NULL ORDER BY 1\n",
     "PIVOT t ON a IN (1, 2), b#"},
    {"PIVOT t ON a IN (SELECT x FROM u)", "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (SELECT x FROM u)\n",
     "PIVOT t ON a #"},
    {"WITH c AS (FROM t) PIVOT c ON a",
     "WITH c AS (FROM t) SELECT DISTINCT CAST((a) AS VARCHAR) FROM c WHERE (a) IS NOT NULL ORDER BY 1\n",
     "WITH c AS (FROM t) PIVOT c ON a#"},
    {"WITH c AS (FROM t), d AS (PIVOT c ON a), e AS (FROM d) FROM e",
     "WITH c AS (FROM t) SELECT DISTINCT CAST((a) AS VARCHAR) FROM c WHERE (a) IS NOT NULL ORDER BY 1\n",
     "WITH c AS (FROM t), d AS (PIVOT c ON a#), e AS (FROM d) FROM e"},
    {"WITH c AS (FROM t) SELECT * FROM (PIVOT c ON a) ORDER BY 1",
     "WITH c AS (FROM t) SELECT DISTINCT CAST((a) AS VARCHAR) FROM c WHERE (a) IS NOT NULL ORDER BY 1\n",
     "WITH c AS (FROM t) SELECT * FROM (PIVOT c ON a#) ORDER BY 1"},
    /* the inner one first: the outer one is read from it */
    {"PIVOT (PIVOT t ON a) ON b",
     "SELECT DISTINCT CAST((a) AS VARCHAR) FROM t WHERE (a) IS NOT NULL ORDER BY 1\n",
     "PIVOT (PIVOT t ON a#) ON b"},
    {"PIVOT (PIVOT t ON a IN (1)) ON b",
     "SELECT DISTINCT CAST((b) AS VARCHAR) FROM (PIVOT t ON a IN (1)) WHERE (b) IS NOT NULL ORDER BY 1\n",
     "PIVOT (PIVOT t ON a IN (1)) ON b#"},
    {"DESCRIBE PIVOT t ON a",
     "SELECT DISTINCT CAST((a) AS VARCHAR) FROM t WHERE (a) IS NOT NULL ORDER BY 1\n",
     "DESCRIBE PIVOT t ON a#"},
    {"PIVOT t ON a IN (1, 2)", NULL, NULL},
    {"FROM t PIVOT (sum(v) FOR a IN (1)) AS p JOIN u ON p.x = u.x", NULL, NULL},
    {"WITH c AS (FROM t) SELECT * FROM (c) PIVOT (sum(v) FOR a IN (1)) JOIN u ON x = y", NULL, NULL},
    {"WITH c AS (FROM t) SELECT * FROM (WITH d AS (FROM c) PIVOT d ON a)", NULL, NULL},
    {"SELECT 'PIVOT t ON a', pivot FROM t -- PIVOT t ON a", NULL, NULL},
    {"PIVOT t", NULL, NULL},
    {"PIVOT ON a", NULL, NULL},
    {"PIVOT t ON", NULL, NULL},
    {"PIVOT", NULL, NULL},
    {"((( PIVOT", NULL, NULL},
    {"", NULL, NULL},
};

/* Appends a text; the buffer is large enough for those above. */
static void append(char *out, const char *text, size_t length) {
  size_t at = strlen(out);
  memcpy(out + at, text, length);
  out[at + length] = '\0';
}

static void pivot_without_values_has_a_gap_for_each_column(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
    char values[1000] = "", cut[1000] = "";
    const char *sql = ROWS[i].sql;
    arena *a = arena_new();
    const pivot_gap *gaps = NULL;
    size_t n = 0, at = 0;
    hf_error error = {0};
    assert_int_equal(pivot_find_gaps(sql, a, &gaps, &n, &error), HF_OK);
    for (size_t k = 0; k < n; k++) {
      append(values, gaps[k].values_sql, strlen(gaps[k].values_sql));
      append(values, "\n", 1);
      append(cut, sql + at, gaps[k].begin - at);
      append(cut, "#", 1);
      at = gaps[k].end;
    }
    append(cut, sql + at, strlen(sql + at));
    assert_string_equal(values, ROWS[i].gaps == NULL ? "" : ROWS[i].gaps);
    assert_string_equal(cut, ROWS[i].cut == NULL ? sql : ROWS[i].cut);
    arena_free(a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pivot_without_values_has_a_gap_for_each_column),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
