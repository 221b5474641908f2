/* SPDX-License-Identifier: Apache-2.0 */
/* hf_blocks: projection, several scans, early ends, and inputs that are not what they should be. */
#include "store.h"

typedef struct case_state {
  rig rig;
  store store;
  arena *memory;
  schema columns;
  engine_input input;
} case_state;

static const char rows_sql[] =
    "SELECT range AS n, range::VARCHAR AS t, {'a': range, 'b': {'c': range * 2}} AS s FROM range(50000)";

static int setup(void **state) {
  case_state *c = calloc(1, sizeof *c);
  rig_open(&c->rig, 2);
  store_init(&c->store);
  c->memory = arena_new();
  assert_ok(engine_describe(c->rig.slot, rows_sql, c->memory, &c->columns, ok_error));
  store_fill(&c->store, c->rig.slot, rows_sql);
  c->input = store_input(&c->store, "in", &c->columns);
  *state = c;
  return 0;
}

static int teardown(void **state) {
  case_state *c = *state;
  assert_int_equal(c->store.scans, 0);
  assert_int_equal(c->store.readers, 0);
  arena_free(c->memory);
  store_reset(&c->store);
  rig_close(&c->rig);
  free(c);
  return 0;
}

static void expect(case_state *c, const char *sql, size_t n_columns, const char *wanted) {
  char *text = rig_render(c->rig.slot, sql, n_columns, &c->input, 1);
  assert_string_equal(text, wanted);
  free(text);
}

static void blocks_are_read_in_any_projection(void **state) {
  case_state *c = *state;
  expect(c, "SELECT count(*) FROM hf_blocks('in')", 1, "50000\n");
  expect(c, "SELECT max(c1), min(c0) FROM hf_blocks('in')", 2, "9999|0\n");
  expect(c, "SELECT c2, c0, c2.b.c FROM hf_blocks('in') WHERE c1 = '4711'", 3,
         "{'a': 4711, 'b': {'c': 9422}}|4711|9422\n");
  expect(c, "SELECT sum(c2.a), sum(c2.b.c) FROM hf_blocks('in')", 2, "1249975000|2499950000\n");
}

static void blocks_are_read_twice_in_one_query(void **state) {
  case_state *c = *state;
  expect(c, "SELECT count(*), sum(b.c0) FROM hf_blocks('in') a JOIN hf_blocks('in') b ON a.c0 = b.c0 + 1", 2,
         "49999|1249925001\n");
}

static void blocks_are_left_early(void **state) {
  case_state *c = *state;
  c->store.threads = 1;
  expect(c, "SELECT c0 FROM hf_blocks('in') LIMIT 3", 1, "0\n1\n2\n");
}

static void blocks_of_several_inputs_are_told_apart(void **state) {
  case_state *c = *state;
  store other;
  store_init(&other);
  store_fill(&other, c->rig.slot, "SELECT 7 AS k");
  schema columns;
  assert_ok(engine_describe(c->rig.slot, "SELECT 7", c->memory, &columns, ok_error));
  engine_input inputs[2] = {c->input, store_input(&other, "o-2", &columns)};
  char *text =
      rig_render(c->rig.slot, "SELECT a.c0 + b.c0 FROM hf_blocks('in') a, hf_blocks('o-2') b WHERE a.c0 = 1",
                 1, inputs, 2);
  assert_string_equal(text, "8\n");
  free(text);
  store_reset(&other);
}

static hf_status fails(case_state *c, const char *sql, hf_error *error) {
  bool ignored = false;
  return engine_render(c->rig.slot, &(engine_shown){sql, &c->input, 1}, NULL, &ignored, error);
}

static void blocks_of_an_unknown_id_are_refused(void **state) {
  case_state *c = *state;
  hf_error error = {0};
  assert_int_equal(fails(c, "SELECT * FROM hf_blocks('nope')", &error), HF_E_BIND);
  assert_non_null(strstr(error.message, "hf_blocks knows no input"));
  schema s;
  assert_int_equal(engine_describe(c->rig.slot, "FROM hf_blocks('in')", c->memory, &s, &error), HF_E_BIND);
  hf_error_reset(&error);
}

static void source_that_fails_ends_the_query_with_its_error(void **state) {
  case_state *c = *state;
  hf_error error = {0};
  c->store.fail_next_at = 3;
  assert_int_equal(fails(c, "SELECT sum(c0) FROM hf_blocks('in')", &error), HF_E_BLOCK_CORRUPT);
  assert_string_equal(error.message, "the test's block is damaged");
  assert_int_equal(error.error_class, HF_CLASS_FETCH);
  hf_error_reset(&error);
}

static hf_status open_nothing(void *source, const size_t *columns, size_t n_columns, void **scan,
                              unsigned *threads, hf_error *error) {
  (void)source;
  (void)columns;
  (void)n_columns;
  (void)scan;
  (void)threads;
  return error_set(error, HF_E_BLOCK_MISSING, "the test's block is not there");
}

static hf_status open_no_reader(void *scan, void **state, hf_error *error) {
  (void)scan;
  (void)state;
  return error_set(error, HF_E_BLOCK_MISSING, "the test's block is not there");
}

static void source_that_does_not_open_ends_the_query_with_its_error(void **state) {
  case_state *c = *state;
  source_ops no_scan = store_source, no_reader = store_source;
  no_scan.open = open_nothing;
  no_reader.thread_open = open_no_reader;
  const source_ops *const both[] = {&no_scan, &no_reader};
  for (size_t i = 0; i < 2; i++) {
    hf_error error = {0};
    c->input.ops = both[i];
    assert_int_equal(fails(c, "SELECT sum(c0) FROM hf_blocks('in')", &error), HF_E_BLOCK_MISSING);
    assert_string_equal(error.message, "the test's block is not there");
    hf_error_reset(&error);
  }
}

static void blocks_of_another_type_are_refused(void **state) {
  case_state *c = *state;
  hf_error error = {0};
  schema wrong;
  assert_ok(engine_describe(c->rig.slot,
                            "SELECT 1::BIGINT, 2::INTEGER, {'a': 1::BIGINT, 'b': {'c': 1::BIGINT}}",
                            c->memory, &wrong, ok_error));
  c->input.columns = &wrong;
  assert_int_equal(fails(c, "SELECT sum(c1) FROM hf_blocks('in')", &error), HF_E_INTERNAL);
  assert_non_null(strstr(error.message, "VARCHAR, expected INTEGER"));
  wrong.n_columns = 2;
  assert_int_equal(fails(c, "SELECT sum(c1) FROM hf_blocks('in')", &error), HF_E_INTERNAL);
  hf_error_reset(&error);
}

/* A window that does not begin at a multiple of 8 leaves an offset, which DuckDB misreads below a STRUCT. */
static void windows_with_an_offset_in_a_struct_are_refused(void **state) {
  case_state *c = *state;
  hf_error error = {0};
  c->store.window = 13;
  expect(c, "SELECT sum(c0), max(c1) FROM hf_blocks('in')", 2, "1249975000|9999\n");
  assert_int_equal(fails(c, "SELECT sum(c2.a) FROM hf_blocks('in')", &error), HF_E_INTERNAL);
  assert_non_null(strstr(error.message, "offset"));
  hf_error_reset(&error);
}

static void windows_longer_than_a_vector_are_refused(void **state) {
  case_state *c = *state;
  hf_error error = {0};
  c->store.window = 2056;
  assert_int_equal(fails(c, "SELECT sum(c0) FROM hf_blocks('in')", &error), HF_E_INTERNAL);
  hf_error_reset(&error);
}

/* ------------------------------------------------------------ a client's arrays */

enum { CLIENT_ROWS = 3 };

typedef struct client_rows {
  struct ArrowSchema *fields[8], block_schema;
  struct ArrowArray *children[8], array;
  bool given;
} client_rows;

static void release_field(struct ArrowSchema *field) {
  field->release = NULL;
}

static void release_array(struct ArrowArray *array) {
  array->release = NULL;
}

static hf_status client_open(void *source, const size_t *columns, size_t n_columns, void **scan,
                             unsigned *threads, hf_error *error) {
  (void)error;
  client_rows *rows = source;
  for (size_t i = 0; i < n_columns; i++) {
    assert_int_equal(columns[i], i); /* SELECT *: the arrays are given as they are */
  }
  rows->given = false;
  *threads = 1;
  *scan = source;
  return HF_OK;
}

static hf_status client_reader_open(void *scan, void **state, hf_error *error) {
  (void)error;
  *state = scan;
  return HF_OK;
}

static hf_status client_next(void *state, struct ArrowArray *out, hf_error *error) {
  (void)error;
  client_rows *rows = state;
  *out = rows->array;
  out->length = rows->given ? 0 : CLIENT_ROWS;
  rows->given = true;
  return HF_OK;
}

static void client_close(void *state) {
  (void)state;
}

static const source_ops client_source = {client_open, client_reader_open, client_next, client_close,
                                         client_close};

/* Types that DuckDB does not write but reads: what blocks of a client's rows may hold. */
static void blocks_of_a_clients_types_are_read(void **state) {
  case_state *c = *state;
  static const int64_t seconds[] = {1, -60, 3600}, large_ends[] = {0, 2, 2, 3};
  static const int32_t time_seconds[] = {0, 61, 86399}, months[] = {14, 0, -1};
  static const int64_t date_ms[] = {0, 86400000, -86400000};
  static const uint8_t bits[8] = {5}, validity[8] = {3};
  static const struct {
    int32_t months, days;
    int64_t us;
  } intervals[] = {{1, 2, INT64_MAX}, {0, 0, -1}, {-1, 0, 0}};
  const void *b[7][2] = {{NULL, seconds}, {NULL, time_seconds},   {NULL, months},   {NULL, date_ms},
                         {NULL, bits},    {validity, large_ends}, {NULL, intervals}};
  struct ArrowSchema element = {.format = "w:16", .name = "l", .flags = 2, .release = release_field},
                     *elements = &element;
  struct ArrowArray values = {.length = 3, .n_buffers = 2, .buffers = b[6], .release = release_array},
                    *list = &values;
  static const char *const formats[] = {"tDs", "tts", "tiM", "tdm", "b", "+L", "w:16"};
  static const data_type interval = {.kind = TYPE_INTERVAL}, time_type = {.kind = TYPE_TIME},
                         date = {.kind = TYPE_DATE}, boolean = {.kind = TYPE_BOOLEAN};
  static const data_type *const interval_child[] = {&interval};
  static const data_type intervals_type = {.kind = TYPE_LIST, .n_children = 1, .children = interval_child};
  const column columns[] = {{"a", &interval}, {"b", &time_type},      {"c", &interval}, {"d", &date},
                            {"e", &boolean},  {"f", &intervals_type}, {"g", &interval}};
  const schema types = {7, columns};
  struct ArrowSchema fields[7];
  struct ArrowArray arrays[7];
  const void *no_buffers[1] = {NULL};
  client_rows rows = {0};
  for (size_t i = 0; i < 7; i++) {
    fields[i] = (struct ArrowSchema){.format = formats[i], .name = "", .flags = 2, .release = release_field};
    arrays[i] =
        (struct ArrowArray){.length = CLIENT_ROWS, .n_buffers = 2, .buffers = b[i], .release = release_array};
    rows.fields[i] = &fields[i];
    rows.children[i] = &arrays[i];
  }
  fields[5].n_children = arrays[5].n_children = 1;
  fields[5].children = &elements;
  arrays[5].children = &list;
  arrays[5].null_count = 1;
  rows.block_schema =
      (struct ArrowSchema){.format = "+s", .name = "", .n_children = 7, .children = rows.fields};
  rows.array = (struct ArrowArray){.n_buffers = 1,
                                   .buffers = no_buffers,
                                   .n_children = 7,
                                   .children = rows.children,
                                   .release = release_array};
  engine_input input = {.id = "cl",
                        .ops = &client_source,
                        .source = &rows,
                        .columns = &types,
                        .block_schema = &rows.block_schema,
                        .rows = CLIENT_ROWS};
  char *text = rig_render(c->rig.slot, "SELECT * FROM hf_blocks('cl')", 7, &input, 1);
  assert_string_equal(
      text, "00:00:01|00:00:00|1 year 2 months|1970-01-01|true|['1 month 2 days 2562047788:00:54.775807', "
            "'-00:00:00.000001']|1 month 2 days 2562047788:00:54.775807\n"
            "-00:01:00|00:01:01|00:00:00|1970-01-02|false|[]|-00:00:00.000001\n"
            "01:00:00|23:59:59|-1 month|1969-12-31|true|~|-1 month\n");
  free(text);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(blocks_are_read_in_any_projection),
      CASE(blocks_are_read_twice_in_one_query),
      CASE(blocks_are_left_early),
      CASE(blocks_of_several_inputs_are_told_apart),
      CASE(blocks_of_an_unknown_id_are_refused),
      CASE(source_that_fails_ends_the_query_with_its_error),
      CASE(source_that_does_not_open_ends_the_query_with_its_error),
      CASE(blocks_of_another_type_are_refused),
      CASE(windows_with_an_offset_in_a_struct_are_refused),
      CASE(windows_longer_than_a_vector_are_refused),
      CASE(blocks_of_a_clients_types_are_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
