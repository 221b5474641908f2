/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow streams as DataFrames: round trips of every kind of value, and streams that are refused. */
#include "support/api_case.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Collects the query, gives the stream back to the session and names it. */
static hf_df *round_trip(api_case *c, const char *sql, const char *name) {
  hf_df *query = api_sql(c, sql);
  hf_df *back = NULL;
  struct ArrowArrayStream stream;
  assert_int_equal(hf_df_collect(query, NULL, &stream, &c->error), HF_OK);
  hf_status status = hf_session_from_stream(c->session, &stream, &back, &c->error);
  if (status != HF_OK) {
    fail_msg("from_stream: %s", c->error.message);
  }
  assert_null(stream.release);
  assert_int_equal(hf_df_create_view(back, name, true, &c->error), HF_OK);
  hf_df_free(query);
  return back;
}

static void stream_comes_back_with_names_and_order(void **state) {
  api_case *c = *state;
  hf_df *back = round_trip(c, "SELECT i, CASE WHEN i % 2 = 0 THEN 't' || i END AS t FROM range(5) t(i)", "x");
  api_expect_df(c, back, "0|t0\n1|NULL\n2|t2\n3|NULL\n4|t4\n");
  api_expect(c, "SELECT sum(i)::BIGINT, count(t) FROM x", "10|3\n");
  hf_profile profile = api_expect_df(c, back, "0|t0\n1|NULL\n2|t2\n3|NULL\n4|t4\n");
  assert_int_equal(profile.source_rows, 5);
  hf_df_free(back);
}

static void stream_of_every_type_comes_back_equal(void **state) {
  /* expressions of each type; the check is done by the engine, over both */
  static const char query[] =
      "SELECT (i % 2 = 0) AS bo, i::TINYINT AS ti, (-i)::SMALLINT AS si, i::INTEGER AS ii, i::UTINYINT AS uti, "
      "i::USMALLINT AS usi, i::UINTEGER AS ui, i::UBIGINT AS ub, (i * -1)::BIGINT AS bi, (i::HUGEINT << 70) AS hu, "
      "i::FLOAT / 3 AS fl, i::DOUBLE / 3 AS db, (i / 7)::DECIMAL(4, 1) AS d4, (i / 7)::DECIMAL(18, 3) AS d18, "
      "(i / 7)::DECIMAL(38, 10) AS d38, DATE '2024-01-01' + i::INTEGER AS dt, TIME '01:02:03' AS tm, "
      "TIMESTAMP '2024-01-01 01:02:03.456' AS ts, TIMESTAMP_NS '2024-01-01 01:02:03.123456789' AS tns, "
      "TIMESTAMPTZ '2024-01-01 00:00:00+00' AS tz, to_days(i::INTEGER) AS iv, 'text ' || i AS t, "
      "repeat('long', i::INTEGER * 10) AS lt, ('b' || i)::BLOB AS bl, "
      "[i, NULL, i + 1] AS li, [[i], [], NULL] AS ll, {'a': i, 'b': 'x', 'c': [i]} AS st, MAP {'k' || i: i} AS m "
      "FROM range(10) t(i)";
  api_case *c = *state;
  hf_df *original = api_sql(c, query);
  assert_int_equal(hf_df_create_view(original, "original", false, &c->error), HF_OK);
  hf_df *back = round_trip(c, query, "back");
  api_expect(c, "SELECT count(*) FROM (SELECT * FROM original EXCEPT ALL SELECT * FROM back)", "0\n");
  api_expect(c, "SELECT count(*) FROM (SELECT * FROM back EXCEPT ALL SELECT * FROM original)", "0\n");
  api_expect(c, "SELECT count(*) FROM back", "10\n");
  hf_df_free(back);
  hf_df_free(original);
}

static void stream_of_no_rows_has_its_columns(void **state) {
  api_case *c = *state;
  hf_df *back = round_trip(c, "SELECT 1 AS a, 'x' AS b WHERE false", "x");
  api_expect_df(c, back, "");
  api_expect(c, "SELECT count(a), count(b) FROM x", "0|0\n");
  hf_df_free(back);
}

static void stream_of_many_rows_keeps_its_order(void **state) {
  api_case *c = *state;
  hf_df *back = round_trip(c, "SELECT i FROM range(300000) t(i)", "x");
  hf_df *plain = api_sql(c, "SELECT i FROM range(300000) t(i)");
  char *a = api_rows(c, back, NULL);
  char *b = api_rows(c, plain, NULL);
  assert_true(strcmp(a, b) == 0);
  free(a);
  free(b);
  hf_df_free(plain);
  hf_df_free(back);
}

static void held_query_over_client_data_hits(void **state) {
  api_case *c = *state;
  hf_df *back = round_trip(c, "SELECT i FROM range(100) t(i)", "x");
  hf_df *query = api_sql(c, "SELECT sum(i)::BIGINT FROM x");
  hf_df *held = api_cache(c, query);
  assert_int_equal(api_expect_df(c, held, "4950\n").held_fills, 1);
  hf_profile warm = api_expect_df(c, held, "4950\n");
  assert_int_equal(warm.held_hits, 1);
  assert_int_equal(warm.source_rows, 0);
  hf_df_free(held);
  hf_df_free(query);
  hf_df_free(back);
}

static void columns_keep_duplicate_and_empty_names(void **state) {
  api_case *c = *state;
  hf_df *back = round_trip(c, "SELECT 1 AS a, 2 AS a, 3 AS \"x.y\"", "x");
  struct ArrowSchema fields;
  assert_int_equal(hf_df_schema(back, &fields, &c->error), HF_OK);
  assert_string_equal(fields.children[0]->name, "a");
  assert_string_equal(fields.children[1]->name, "a");
  assert_string_equal(fields.children[2]->name, "x.y");
  fields.release(&fields);
  api_expect_df(c, back, "1|2|3\n");
  hf_df_free(back);
}

/* ---------------------------------------------------------- streams by hand */

typedef struct made_stream {
  const char *format; /* of its one column; NULL: no columns */
  const char *name;
  bool fails;         /* at the first batch */
  unsigned *released; /* counted up */
} made_stream;

static void release_schema(struct ArrowSchema *schema) {
  for (int64_t i = 0; i < schema->n_children; i++) {
    free(schema->children[i]);
  }
  free(schema->children);
  schema->release = NULL;
}

static void release_child(struct ArrowSchema *schema) {
  schema->release = NULL;
}

static int made_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
  const made_stream *m = stream->private_data;
  *out = (struct ArrowSchema){.format = "+s", .name = "", .release = release_schema};
  if (m->format != NULL) {
    out->n_children = 1;
    out->children = calloc(1, sizeof *out->children);
    out->children[0] = calloc(1, sizeof *out->children[0]);
    *out->children[0] =
        (struct ArrowSchema){.format = m->format, .name = m->name, .flags = 2, .release = release_child};
  }
  return 0;
}

static int made_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
  const made_stream *m = stream->private_data;
  memset(out, 0, sizeof *out);
  return m->fails ? EIO : 0;
}

static const char *made_error(struct ArrowArrayStream *stream) {
  (void)stream;
  return "the wire was cut";
}

static void made_release(struct ArrowArrayStream *stream) {
  made_stream *m = stream->private_data;
  ++*m->released;
  stream->release = NULL;
}

static struct ArrowArrayStream stream_of(made_stream *m) {
  return (struct ArrowArrayStream){.get_schema = made_schema,
                                   .get_next = made_next,
                                   .get_last_error = made_error,
                                   .release = made_release,
                                   .private_data = m};
}

static void expect_refused(api_case *c, made_stream *m, hf_status code, const char *text) {
  unsigned released = 0;
  m->released = &released;
  struct ArrowArrayStream stream = stream_of(m);
  hf_df *df = NULL;
  unsigned before = files_below(c->work_dir);
  hf_error_reset(&c->error);
  assert_int_equal(hf_session_from_stream(c->session, &stream, &df, &c->error), code);
  assert_null(df);
  assert_int_equal(released, 1);
  if (strstr(c->error.message, text) == NULL &&
      (c->error.cause == NULL || strstr(c->error.cause, text) == NULL)) {
    fail_msg("\"%s\" is not in: %s", text, c->error.message);
  }
  assert_int_equal(files_below(c->work_dir), before);
}

static void stream_without_columns_is_refused(void **state) {
  made_stream m = {0};
  expect_refused(*state, &m, HF_E_INVALID_ARGUMENT, "no columns");
}

static void stream_of_an_unknown_type_is_refused_by_name(void **state) {
  made_stream m = {.format = "Zz", .name = "odd"};
  expect_refused(*state, &m, HF_E_UNSUPPORTED, "odd");
}

static void stream_that_fails_leaves_nothing(void **state) {
  made_stream m = {.format = "l", .name = "x", .fails = true};
  expect_refused(*state, &m, HF_E_INVALID_ARGUMENT, "the wire was cut");
}

static void stream_column_without_a_name_is_called_by_its_place(void **state) {
  api_case *c = *state;
  unsigned released = 0;
  made_stream m = {.format = "l", .name = NULL, .released = &released};
  struct ArrowArrayStream stream = stream_of(&m);
  hf_df *df = NULL;
  assert_int_equal(hf_session_from_stream(c->session, &stream, &df, &c->error), HF_OK);
  struct ArrowSchema fields;
  if (hf_df_schema(df, &fields, &c->error) != HF_OK) {
    fail_msg("%s", c->error.message);
  }
  assert_string_equal(fields.children[0]->name, "v0");
  fields.release(&fields);
  api_expect_df(c, df, "");
  hf_df_free(df);
}

static void released_stream_is_refused(void **state) {
  api_case *c = *state;
  struct ArrowArrayStream stream = {0};
  hf_df *df = NULL;
  assert_int_equal(hf_session_from_stream(c->session, &stream, &df, &c->error), HF_E_INVALID_ARGUMENT);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(stream_comes_back_with_names_and_order),
      CASE(stream_of_every_type_comes_back_equal),
      CASE(stream_of_no_rows_has_its_columns),
      CASE(stream_of_many_rows_keeps_its_order),
      CASE(held_query_over_client_data_hits),
      CASE(columns_keep_duplicate_and_empty_names),
      CASE(stream_without_columns_is_refused),
      CASE(stream_of_an_unknown_type_is_refused_by_name),
      CASE(stream_that_fails_leaves_nothing),
      CASE(stream_column_without_a_name_is_called_by_its_place),
      CASE(released_stream_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
