/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries cut again and again, as their stages are launched and done, with what these really gave: what was launched is
 * always there again, the answer is right, and sides that are to move are filtered by the keys that are known.
 */
#include "support/cut_case.h"

#include "base/buf.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS = 3, MOST_FACTS = 40, MOST_COLUMNS = 12, MOST_VALUES = 6, MOST_ROWS = 10000 };

static const char *const data[] = {
    "CREATE TABLE t AS SELECT i AS id, CASE WHEN i % 7 > 0 THEN i % 50 - 20 END AS k, i % 3 AS g, "
    "DATE '1969-12-01' + (i % 60)::INTEGER AS d, ((i % 40 - 20) * 0.25)::DECIMAL(9, 2) AS m FROM range(300) r(i)",
    "CREATE TABLE u AS SELECT CASE WHEN i % 6 > 0 THEN i % 90 - 50 END AS k, i AS w, i % 4 AS g, "
    "DATE '1969-12-20' + (i % 45)::INTEGER AS d, ((i % 30 - 9) * 0.25)::DECIMAL(9, 2) AS m FROM range(200) r(i)",
    "CREATE TABLE s AS SELECT i - 3 AS k, i AS x FROM range(9) r(i)",
    /* values of every type that is watched, the least and the largest among the first */
    "CREATE TABLE v (i BIGINT, a INTEGER, b UINTEGER, c BIGINT, d UBIGINT, e DATE, f TIME, g TIMESTAMP, h TIMESTAMP_S, "
    "j TIMESTAMP_MS, k TIMESTAMP_NS, l TIMESTAMPTZ, m DECIMAL(9, 4), n DECIMAL(18, 0), o DECIMAL(18, 18))",
    "INSERT INTO v VALUES (0, -2147483648, 0, -9223372036854775808, 0, '-infinity', '00:00:00', '-infinity', "
    "'1900-01-01 00:00:00', '1900-01-01 00:00:00.001', '1900-01-01 00:00:00.000000001', '-infinity', -99999.9999, "
    "-999999999999999999, -0.999999999999999999), (1, 2147483647, 4294967295, 9223372036854775807, "
    "18446744073709551615, 'infinity', '24:00:00', 'infinity', '2900-01-01 00:00:00', '2900-01-01 00:00:00.999', "
    "'2200-01-01 00:00:00.999999999', 'infinity', 99999.9999, 999999999999999999, 0.999999999999999999), "
    "(2, 0, 9, 0, 9223372036854775808, '0044-03-15 (BC)', '12:34:56.789012', '0044-03-15 (BC) 01:02:03.000004', "
    "'0044-03-15 (BC) 01:02:03', '0044-03-15 (BC) 01:02:03.004', '1969-12-31 23:59:59.999999999', "
    "'0044-03-15 (BC) 01:02:03.000004+00', -0.0001, 0, -0.000000000000000001)",
    "INSERT INTO v SELECT i, i, i, i, i, DATE '2000-01-01' + i::INTEGER, TIME '01:00:00' + to_seconds(i), "
    "TIMESTAMP '2000-01-01' + to_seconds(i), TIMESTAMP '2000-01-01' + to_seconds(i), TIMESTAMP '2000-01-01' + "
    "to_seconds(i), TIMESTAMP '2000-01-01' + to_seconds(i), TIMESTAMPTZ '2000-01-01 00:00:00+00' + to_seconds(i), i / 7, "
    "i, i / 1000 FROM range(3, 60) r(i)",
};

static int open_case(void **state) {
  *state = cut_case_new(data, sizeof data / sizeof data[0]);
  return 0;
}

/* ----------------------------------------------------------------- what is known */

typedef struct course {
  cut_case *c;
  const char *sql;
  cut_options options;
  bool launches; /* all that can be, before one is done; else one after the other */
  bool is_hasty; /* none waits, though it should: as when what was cut again was not taken */
  cut_graph graph;
  size_t n_facts, n_measured;
  cut_fact facts[MOST_FACTS];    /* of what was launched */
  cut_fact measured[MOST_FACTS]; /* of all stages that have been run here */
} course;

/* What makes a column a number as DuckDB stores it. */
typedef struct storing {
  const char *before, *behind;
  const char *infinity; /* NULL: it has none */
} storing;

static storing stored(const data_type *type) {
  switch (type->kind) {
    case TYPE_INTEGER:
    case TYPE_BIGINT:
    case TYPE_UINTEGER:
    case TYPE_UBIGINT:
      return (storing){"", "", NULL};
    case TYPE_DATE:
      return (storing){"", " - DATE '1970-01-01'", "2147483647"};
    case TYPE_DECIMAL:
      return (storing){"replace(", "::VARCHAR, '.', '')::BIGINT", NULL};
    case TYPE_TIME:
      return (storing){"datediff('microsecond', TIME '00:00:00', ", ")", NULL};
    case TYPE_TIMESTAMP_S:
      return (storing){"epoch(", ")::BIGINT", NULL};
    case TYPE_TIMESTAMP_MS:
      return (storing){"epoch_ms(", ")", NULL};
    case TYPE_TIMESTAMP_NS:
      return (storing){"epoch_ns(", ")", NULL};
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_TZ:
      return (storing){"epoch_us(", ")", "9223372036854775807"};
    default:
      fail_msg("%s is watched", type_kind_name(type->kind));
      return (storing){"", "", NULL};
  }
}

static void ask(course *y, const char *sql, oracle_rows *rows) {
  char *error = oracle_query(y->c->o, sql, MOST_ROWS, rows);
  if (error != NULL) {
    fail_msg("%s: %s", sql, error);
  }
}

static uint64_t number_at(const oracle_rows *rows, size_t i) {
  const char *text = rows->cells[i].text;
  return text[0] == '-' ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10);
}

static cut_column_fact column_fact_of(course *y, uint32_t at, uint32_t number) {
  char sql[500], value[200];
  oracle_rows rows, count;
  const storing how = stored(y->graph.stages[at].columns.columns[number].type);
  cut_column_fact fact = {.column = number};
  snprintf(sql, sizeof sql, "SELECT count(c%u)::VARCHAR FROM temp.main.cut_s%u", number, at);
  ask(y, sql, &count);
  fact.rows = number_at(&count, 0);
  snprintf(value, sizeof value, "%sc%u%s", how.before, number, how.behind);
  if (how.infinity != NULL) {
    snprintf(value, sizeof value,
             "CASE WHEN c%u = 'infinity' THEN %s WHEN c%u = '-infinity' THEN -%s ELSE %sc%u%s END", number,
             how.infinity, number, how.infinity, how.before, number, how.behind);
  }
  snprintf(
      sql, sizeof sql,
      "SELECT v::VARCHAR FROM (SELECT DISTINCT %s AS v FROM temp.main.cut_s%u WHERE c%u IS NOT NULL) ORDER BY v",
      value, at, number);
  ask(y, sql, &rows);
  if (rows.n_rows > 0) {
    fact.least = number_at(&rows, 0);
    fact.most = number_at(&rows, rows.n_rows - 1);
  }
  if (rows.n_rows <= MOST_VALUES) {
    uint64_t *values = arena_array(y->c->a, rows.n_rows + 1, sizeof *values);
    for (size_t i = 0; i < rows.n_rows; i++) {
      values[i] = number_at(&rows, i);
    }
    fact.n_values = rows.n_rows;
    fact.values = values;
  }
  oracle_rows_free(&rows);
  oracle_rows_free(&count);
  return fact;
}

static cut_fact *find(cut_fact *facts, size_t n, cut_mark mark) {
  for (size_t i = 0; i < n; i++) {
    if (memcmp(&facts[i].mark, &mark, sizeof mark) == 0) {
      return &facts[i];
    }
  }
  return NULL;
}

/* Measures what a stage gave: of the columns that are watched, as the scheduler has it. */
static void measure(void *context, uint32_t at) {
  course *y = context;
  char sql[100];
  oracle_rows rows;
  const cut_stage *stage = &y->graph.stages[at];
  if (find(y->measured, y->n_measured, stage->mark) != NULL) {
    return;
  }
  assert_true(y->n_measured < MOST_FACTS);
  cut_fact *fact = &y->measured[y->n_measured++];
  cut_column_fact *columns = arena_array(y->c->a, stage->n_watched + 1, sizeof *columns);
  snprintf(sql, sizeof sql, "SELECT count(*)::VARCHAR FROM temp.main.cut_s%u", at);
  ask(y, sql, &rows);
  *fact = (cut_fact){.mark = stage->mark, .is_done = true, .columns = columns};
  fact->rows = number_at(&rows, 0);
  fact->bytes = fact->rows * 8;
  oracle_rows_free(&rows);
  for (size_t i = 0; i < stage->n_watched; i++) {
    columns[fact->n_columns++] = column_fact_of(y, at, stage->watched[i]);
  }
}

/* -------------------------------------------------------------------- a query's course */

static bool is_ready(const course *y, uint32_t at) {
  const cut_graph *graph = &y->graph;
  const cut_stage *stage = &graph->stages[at];
  bool is_it = !stage->is_done;
  for (size_t i = 0; i < stage->n_inputs; i++) {
    is_it = is_it && (!stage->inputs[i].is_stage || graph->stages[stage->inputs[i].stage].is_done);
  }
  for (size_t i = 0; i < stage->n_after && !y->is_hasty; i++) {
    is_it = is_it && graph->stages[stage->after[i]].is_done;
  }
  return is_it;
}

/* Edges lead back; all that was launched is there, once. */
static void check_graph(course *y) {
  for (uint32_t i = 0; i < y->graph.n_stages; i++) {
    const cut_stage *stage = &y->graph.stages[i];
    for (size_t k = 0; k < stage->n_after; k++) {
      assert_true(stage->after[k] < i);
    }
    assert_true((stage->n_after > 0) == (stage->awaits != NULL));
  }
  for (size_t f = 0; f < y->n_facts; f++) {
    size_t n = 0;
    for (size_t i = 0; i < y->graph.n_stages; i++) {
      n += memcmp(&y->graph.stages[i].mark, &y->facts[f].mark, sizeof(cut_mark)) == 0;
    }
    if (n != 1) {
      fail_msg("%s: stage %zu that was launched is there %zu times", y->sql, f, n);
    }
  }
}

static void cut_now(course *y) {
  tree_refusal refusal;
  y->options.facts = y->facts;
  y->options.n_facts = y->n_facts;
  cut_case_cut(y->c, y->sql, &y->options, y->c->a, &y->graph, &refusal);
  assert_int_equal(refusal.code, TREE_REFUSED_NONE);
  check_graph(y);
}

static cut_fact *launch(course *y, cut_mark mark) {
  cut_fact *found = find(y->facts, y->n_facts, mark);
  if (found == NULL) {
    assert_true(y->n_facts < MOST_FACTS);
    found = &y->facts[y->n_facts++];
    *found = (cut_fact){.mark = mark};
  }
  return found;
}

static void run_now(course *y) {
  oracle_rows expected;
  cut_outcome out = {.verdict = ORACLE_OTHER_ROWS};
  const cut_run r = {.o = y->c->o,
                     .graph = &y->graph,
                     .tasks = TASKS,
                     .sources = y->c->sources,
                     .n_sources = y->c->n_tables,
                     .out = &out,
                     .on_stage = measure,
                     .context = y};
  ask(y, y->sql, &expected);
  cut_run_graph(&r, &expected);
  oracle_rows_free(&expected);
  if (out.problem[0] != '\0') {
    fail_msg("%s: with %zu facts: %s", y->sql, y->n_facts, out.problem);
  }
}

/* Launches what can be, and the last of it is done, which is not the order in which they are made; in haste the first one.
 * False: only the last stage is left. */
static bool step(course *y) {
  uint32_t last = (uint32_t)y->graph.n_stages - 1, at = last;
  for (uint32_t i = 0; i < last; i++) {
    if (is_ready(y, i)) {
      at = y->is_hasty && at < last ? at : i;
      if (y->launches) {
        launch(y, y->graph.stages[i].mark);
      }
    }
  }
  if (at == last) {
    return false;
  }
  const cut_mark mark = y->graph.stages[at].mark;
  if (find(y->measured, y->n_measured, mark) == NULL) {
    run_now(y);
  }
  *launch(y, mark) = *find(y->measured, y->n_measured, mark);
  return true;
}

static course start(cut_case *c, const char *sql, uint64_t broadcast_bytes, bool launches) {
  course y = {.c = c, .sql = sql, .launches = launches};
  y.options = (cut_options){.tasks = TASKS,
                            .broadcast_bytes = broadcast_bytes,
                            .sources = c->sources,
                            .n_sources = c->n_tables,
                            .waits = true};
  return y;
}

static void run_course(course *y) {
  cut_now(y);
  while (step(y)) {
    cut_now(y);
  }
  run_now(y);
}

static const char *const queries[] = {
    "SELECT id, w FROM t JOIN u ON t.k = u.k WHERE w < 9",
    "SELECT id, w FROM t JOIN u ON t.k = u.k AND t.g = u.g WHERE w < 30",
    "SELECT id, w FROM t JOIN u ON t.k = u.k WHERE w < 0",
    "SELECT id, w FROM t LEFT JOIN (SELECT * FROM u WHERE w < 9) u ON t.k = u.k",
    "SELECT id, w FROM (SELECT * FROM t WHERE id < 9) t LEFT JOIN u ON t.k = u.k",
    "SELECT id, w FROM (SELECT * FROM t WHERE id < 9) t RIGHT JOIN u ON t.k = u.k",
    "SELECT id, w FROM t RIGHT JOIN (SELECT * FROM u WHERE w < 9) u ON t.k = u.k",
    "SELECT id, w FROM t FULL JOIN (SELECT * FROM u WHERE w < 9) u ON t.k = u.k",
    "SELECT id FROM t SEMI JOIN (SELECT * FROM u WHERE w < 9) u ON t.k = u.k",
    "SELECT id FROM t ANTI JOIN (SELECT * FROM u WHERE w < 9) u ON t.k = u.k",
    "SELECT id FROM (SELECT * FROM t WHERE id < 9) t ANTI JOIN u ON t.k = u.k",
    "SELECT id, k NOT IN (SELECT k FROM u WHERE w > 195) FROM t",
    "SELECT id, k IN (SELECT k FROM u WHERE k > 0) FROM t WHERE id < 9",
    "SELECT id, (SELECT sum(w) FROM u WHERE u.k = t.k) FROM t WHERE id < 9",
    "SELECT id, (SELECT w FROM u WHERE u.k = t.k AND w < 40) FROM t WHERE id < 90",
    "SELECT id, w FROM t JOIN u ON t.k IS NOT DISTINCT FROM u.k WHERE w < 9",
    "SELECT id, w FROM t JOIN u ON t.d = u.d WHERE w < 9",
    "SELECT id, w FROM t JOIN u ON t.m = u.m WHERE w < 9",
    "SELECT id, w FROM t JOIN u ON t.k + 0 = u.k WHERE w < 9",
    "SELECT t.id, w, x FROM t JOIN u ON t.k = u.k JOIN s ON s.k = u.k WHERE x < 4",
    "SELECT t.k, count(*), sum(w) FROM t JOIN u ON t.k = u.k WHERE w < 9 GROUP BY t.k",
    "SELECT a.k, n, m FROM (SELECT k, count(*) AS n FROM t GROUP BY k) a JOIN (SELECT k, sum(w) AS m FROM u WHERE w < 9 "
    "GROUP BY k) b USING (k)",
    "WITH z AS MATERIALIZED (SELECT * FROM u WHERE w < 9) SELECT id, z.w, y.w FROM t JOIN z ON t.k = z.k JOIN z y ON "
    "t.d = y.d",
    "SELECT a.id, b.id FROM t a JOIN t b ON a.k = b.id WHERE a.id < 40 AND b.g = 1",
};

static void courses_of_queries_end_right(void **state) {
  static const uint64_t sizes[] = {0, 1500};
  for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
    for (size_t k = 0; k < 3 * sizeof sizes / sizeof sizes[0]; k++) {
      course y = start(*state, queries[i], sizes[k / 3], k % 3 > 0);
      y.is_hasty = k % 3 == 2;
      run_course(&y);
    }
  }
}

/* The same side of two joins, filtered in one of them: both stages stay as they were launched. */
static void rows_move_with_a_filter_and_later_without(void **state) {
  static const char *const twice[] = {
      "SELECT id, w FROM (SELECT * FROM t WHERE id < 9) t JOIN u ON t.k = u.k UNION ALL "
      "SELECT id, w FROM u LEFT JOIN (SELECT * FROM t WHERE id < 100) t ON t.k = u.k",
      "SELECT id, w FROM u LEFT JOIN (SELECT * FROM t WHERE id < 100) t ON t.k = u.k UNION ALL "
      "SELECT id, w FROM (SELECT * FROM t WHERE id < 9) t JOIN u ON t.k = u.k",
  };
  for (size_t i = 0; i < sizeof twice / sizeof twice[0]; i++) {
    for (int launches = 0; launches < 2; launches++) {
      course y = start(*state, twice[i], 0, launches == 1);
      run_course(&y);
    }
  }
}

/* ---------------------------------------------------------------------- filters */

static bool has_text(const cut_stage *stage, const char *text) {
  for (size_t i = 0; i < stage->n_pieces; i++) {
    if (stage->pieces[i].text != NULL && strstr(stage->pieces[i].text, text) != NULL) {
      return true;
    }
  }
  return false;
}

/* The source whose stage has a condition that the query has not, or "". */
static const char *filtered_source(const course *y) {
  for (size_t i = 0; i < y->graph.n_stages; i++) {
    const cut_stage *stage = &y->graph.stages[i];
    bool has_filter =
        has_text(stage, " BETWEEN ") || has_text(stage, " = CAST(") || has_text(stage, "WHERE false");
    for (size_t k = 0; has_filter && k < stage->n_inputs; k++) {
      if (!stage->inputs[k].is_stage) {
        return stage->inputs[k].source_id;
      }
    }
  }
  return "";
}

#define FEW_T "(SELECT * FROM t WHERE id < 9) t"
#define FEW_U "(SELECT * FROM u WHERE w < 9) u"

static void side_whose_unmatched_rows_get_out_is_not_filtered(void **state) {
  static const struct {
    const char *sql, *filtered;
  } cases[] = {
      {"SELECT id, w FROM t JOIN " FEW_U " ON t.k = u.k", "t"},
      {"SELECT id, w FROM " FEW_T " JOIN u ON t.k = u.k", "u"},
      {"SELECT id, w FROM t LEFT JOIN " FEW_U " ON t.k = u.k", ""},
      {"SELECT id, w FROM " FEW_T " LEFT JOIN u ON t.k = u.k", "u"},
      {"SELECT id, w FROM t RIGHT JOIN " FEW_U " ON t.k = u.k", "t"},
      {"SELECT id, w FROM " FEW_T " RIGHT JOIN u ON t.k = u.k", ""},
      {"SELECT id, w FROM t FULL JOIN " FEW_U " ON t.k = u.k", ""},
      {"SELECT id, w FROM " FEW_T " FULL JOIN u ON t.k = u.k", ""},
      {"SELECT id FROM t SEMI JOIN " FEW_U " ON t.k = u.k", "t"},
      {"SELECT id FROM " FEW_T " SEMI JOIN u ON t.k = u.k", "u"},
      {"SELECT id FROM t ANTI JOIN " FEW_U " ON t.k = u.k", ""},
      {"SELECT id FROM " FEW_T " ANTI JOIN u ON t.k = u.k", "u"},
      {"SELECT id, k IN (SELECT k FROM " FEW_U ") FROM t", ""},
      {"SELECT id, k IN (SELECT k FROM u) FROM " FEW_T, ""},
      {"SELECT id, (SELECT w FROM u WHERE u.k = t.k AND w < 40) FROM " FEW_T, "u"},
      {"SELECT id, w FROM t ASOF JOIN " FEW_U " ON t.g = u.g AND t.id >= u.w", ""},
      /* NULLs are equal, other types, a key that may fail */
      {"SELECT id, w FROM t JOIN " FEW_U " ON t.k IS NOT DISTINCT FROM u.k", ""},
      {"SELECT id, w FROM t JOIN " FEW_U " ON t.k = u.k::VARCHAR", ""},
      {"SELECT id, w FROM t JOIN " FEW_U " ON t.id // t.k = u.k", ""},
      /* nothing can match; one of two keys; types */
      {"SELECT id, w FROM t JOIN (SELECT * FROM u WHERE w < 0) u ON t.k = u.k", "t"},
      {"SELECT id, w FROM t JOIN (SELECT * FROM u WHERE k IS NULL AND w < 9) u ON t.k = u.w AND t.id = u.k",
       "t"},
      {"SELECT id, w FROM t JOIN " FEW_U " ON t.k = u.k AND t.g + random()::INTEGER * 0 = u.g", "t"},
      {"SELECT id, w FROM t JOIN " FEW_U " ON t.d = u.d", "t"},
      {"SELECT id, w FROM t JOIN (SELECT * FROM u WHERE w < 5) u ON t.m = u.m", "t"},
      /* of 200 keys */
      {"SELECT id, w FROM t JOIN (SELECT * FROM u WHERE w < 100) u ON t.id = u.w", "t"},
      {"SELECT id, w FROM t JOIN (SELECT * FROM u WHERE w < 190) u ON t.id = u.w", ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    course y = start(*state, cases[i].sql, 0, i % 2 == 0);
    run_course(&y);
    const char *found = filtered_source(&y);
    if (strcmp(found, cases[i].filtered) != 0) {
      fail_msg("%s: \"%s\" is filtered", cases[i].sql, found);
    }
  }
}

/* As a list of values, as a range, and of the least and largest values of the type. */
static void filter_of_every_type_loses_nothing(void **state) {
  static const char columns[] = "abcdefghjklmno";
  static const char *const conditions[] = {"i = 1", "i < 5", "i < 12", "i BETWEEN 30 AND 40"};
  for (size_t i = 0; i < sizeof columns - 1; i++) {
    for (size_t k = 0; k < sizeof conditions / sizeof conditions[0]; k++) {
      char sql[200];
      snprintf(sql, sizeof sql, "SELECT x.i, y.i FROM v x JOIN (SELECT * FROM v WHERE %s) y ON x.%c = y.%c",
               conditions[k], columns[i], columns[i]);
      course y = start(*state, sql, 0, false);
      run_course(&y);
      if (strcmp(filtered_source(&y), "v") != 0 && k != 2) {
        fail_msg("%s is not filtered", sql);
      }
    }
  }
}

/* ---------------------------------------------------------------------- waiting */

/* The first stage that waits, or NULL. */
static const cut_stage *waiting_stage(const cut_graph *graph) {
  for (size_t i = 0; i < graph->n_stages; i++) {
    if (graph->stages[i].n_after > 0) {
      return &graph->stages[i];
    }
  }
  return NULL;
}

static size_t count_watched(const cut_graph *graph) {
  size_t n = 0;
  for (size_t i = 0; i < graph->n_stages; i++) {
    n += graph->stages[i].n_watched;
  }
  return n;
}

static void side_waits_where_that_may_change_something(void **state) {
  static const char both[] = "broadcast or exchange, and a filter of its keys";
  static const char placing[] = "broadcast or exchange", filter[] = "a filter of its keys";
  static const struct {
    const char *sql, *awaits;
    size_t n_watched;
    uint64_t wait_bytes;
    cut_whole_side broadcast;
  } cases[] = {
      {"SELECT id, w FROM t JOIN " FEW_U " ON t.k = u.k", both, 1, 0, CUT_WHOLE_IF_SMALL},
      {"SELECT id, w FROM t JOIN " FEW_U " ON t.k = u.k AND t.d = u.d", both, 2, 0, CUT_WHOLE_IF_SMALL},
      {"SELECT id, w FROM t JOIN " FEW_U " ON t.k = u.k", filter, 1, 0, CUT_WHOLE_NEVER},
      {"SELECT id, w FROM t LEFT JOIN " FEW_U " ON t.k = u.k", placing, 0, 0, CUT_WHOLE_IF_SMALL},
      {"SELECT id, w FROM t LEFT JOIN " FEW_U " ON t.k = u.k", NULL, 0, 0, CUT_WHOLE_NEVER},
      {"SELECT id, w FROM " FEW_T " LEFT JOIN u ON t.k = u.k", filter, 1, 0, CUT_WHOLE_IF_SMALL},
      {"SELECT id, w FROM t JOIN " FEW_U " ON t.k::VARCHAR = u.k::VARCHAR", placing, 0, 0,
       CUT_WHOLE_IF_SMALL},
      {"SELECT id, w FROM t FULL JOIN " FEW_U " ON t.k = u.k", NULL, 0, 0, CUT_WHOLE_IF_SMALL},
      {"SELECT id, w FROM t JOIN u ON t.k = u.k", NULL, 0, 0, CUT_WHOLE_IF_SMALL}, /* nothing is guessed */
      {"SELECT id, w FROM t JOIN " FEW_U " ON t.k = u.k", NULL, 0, 1 << 20, CUT_WHOLE_IF_SMALL},
      /* the side that is guessed goes first, though it may be the larger one */
      {"SELECT id FROM (SELECT * FROM t WHERE g < 9) t SEMI JOIN u ON t.k = u.k", filter, 1, 0,
       CUT_WHOLE_NEVER},
      /* dealt by its groups already: what is done has more keys than it */
      {"SELECT id, n FROM t JOIN (SELECT k, count(*) AS n FROM u GROUP BY k) u ON t.k = u.k", NULL, 0, 0,
       CUT_WHOLE_NEVER},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    course y = start(*state, cases[i].sql, 0, false);
    y.options.wait_bytes = cases[i].wait_bytes;
    y.options.broadcast = cases[i].broadcast;
    cut_now(&y);
    const cut_stage *waiting = waiting_stage(&y.graph);
    const char *awaits = waiting == NULL ? "nothing" : waiting->awaits;
    if (strcmp(awaits, cases[i].awaits == NULL ? "nothing" : cases[i].awaits) != 0 ||
        count_watched(&y.graph) != cases[i].n_watched) {
      fail_msg("%zu: %s: awaits %s, %zu watched", i, cases[i].sql, awaits, count_watched(&y.graph));
    }
    y.options.waits = false;
    cut_now(&y);
    assert_null(waiting_stage(&y.graph));
    assert_int_equal(count_watched(&y.graph), 0);
  }
}

/* Behind stages that are left out, since nobody reads them. */
static void side_waits_for_a_stage_that_has_moved(void **state) {
  course y = start(
      *state,
      "WITH w AS (SELECT DISTINCT ON (k) id, k FROM t ORDER BY k, id) SELECT a.k FROM w a FULL JOIN w b "
      "ON a.k = b.k JOIN (SELECT -5 AS c FROM u) q ON q.c NOT IN (q.c, q.c) UNION ALL "
      "SELECT w FROM t JOIN " FEW_U " ON t.k = u.k",
      0, false);
  cut_now(&y);
  const cut_stage *waiting = waiting_stage(&y.graph);
  assert_non_null(waiting);
  const cut_stage *first = &y.graph.stages[waiting->after[0]];
  assert_int_equal(first->n_watched, 1);
  assert_string_equal(first->inputs[0].source_id, "u");
  run_course(&y);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(courses_of_queries_end_right),
      cmocka_unit_test(rows_move_with_a_filter_and_later_without),
      cmocka_unit_test(side_whose_unmatched_rows_get_out_is_not_filtered),
      cmocka_unit_test(filter_of_every_type_loses_nothing),
      cmocka_unit_test(side_waits_where_that_may_change_something),
      cmocka_unit_test(side_waits_for_a_stage_that_has_moved),
  };
  return cmocka_run_group_tests(tests, open_case, cut_case_teardown);
}
