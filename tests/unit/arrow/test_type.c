/* SPDX-License-Identifier: Apache-2.0 */
/* Types: spelling, comparing, copying; to Arrow and back. */
#include "arrow/type.h"

#include "arrow/batch.h"
#include "base/mem.h"
#include "support/made_arrow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define PLAIN(name, kind_of) static const data_type name = {.kind = kind_of}

PLAIN(integer, TYPE_INTEGER);
PLAIN(varchar, TYPE_VARCHAR);
PLAIN(hugeint, TYPE_HUGEINT);
PLAIN(interval, TYPE_INTERVAL);
PLAIN(zoned, TYPE_TIMESTAMP_TZ);
PLAIN(nothing, TYPE_NULL);
static const data_type decimal = {.kind = TYPE_DECIMAL, .width = 15, .scale = 2};
static const data_type *const of_integer[] = {&integer};
static const data_type list = {.kind = TYPE_LIST, .n_children = 1, .children = of_integer};
static const data_type array = {.kind = TYPE_ARRAY, .array_size = 3, .n_children = 1, .children = of_integer};
static const data_type *const two[] = {&varchar, &decimal};
static const char *const two_names[] = {"a\"b", "c d"};
static const data_type row = {
    .kind = TYPE_STRUCT, .n_children = 2, .children = two, .n_names = 2, .names = two_names};
static const data_type map = {.kind = TYPE_MAP, .n_children = 2, .children = two};
static const char *const tags[] = {"num", "str"};
static const data_type *const alternatives[] = {&hugeint, &list};
static const data_type either = {
    .kind = TYPE_UNION, .n_children = 2, .children = alternatives, .n_names = 2, .names = tags};
static const char *const moods[] = {"sad", "it's"};
static const data_type mood = {.kind = TYPE_ENUM, .n_names = 2, .names = moods};
static const data_type *const of_row[] = {&row};
static const data_type rows = {.kind = TYPE_LIST, .n_children = 1, .children = of_row};
static const data_type *const deep_children[] = {&rows, &interval, &either};
static const char *const deep_names[] = {"x", "", "z"};
static const data_type deep = {
    .kind = TYPE_STRUCT, .n_children = 3, .children = deep_children, .n_names = 3, .names = deep_names};

static void type_sql_is_what_duckdb_parses(void **state) {
  (void)state;
  static const struct {
    const data_type *type;
    const char *sql;
  } cases[] = {
      {&integer, "INTEGER"},
      {&decimal, "DECIMAL(15,2)"},
      {&list, "INTEGER[]"},
      {&array, "INTEGER[3]"},
      {&row, "STRUCT(\"a\"\"b\" VARCHAR, \"c d\" DECIMAL(15,2))"},
      {&map, "MAP(VARCHAR, DECIMAL(15,2))"},
      {&either, "UNION(\"num\" HUGEINT, \"str\" INTEGER[])"},
      {&mood, "ENUM('sad', 'it''s')"},
      {&rows, "STRUCT(\"a\"\"b\" VARCHAR, \"c d\" DECIMAL(15,2))[]"},
      {&zoned, "TIMESTAMP WITH TIME ZONE"},
      {&nothing, "\"NULL\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    buf text = {0};
    data_type_to_sql(cases[i].type, &text);
    assert_string_equal(buf_cstr(&text), cases[i].sql);
    buf_reset(&text);
  }
  for (int kind = 0; kind < TYPE_KIND_COUNT; kind++) {
    assert_true(strlen(type_kind_name((type_kind)kind)) > 0);
  }
}

static void type_bytes_are_those_of_a_value(void **state) {
  (void)state;
  static const struct {
    type_kind kind;
    size_t bytes;
  } cases[] = {{TYPE_BOOLEAN, 1},      {TYPE_USMALLINT, 2}, {TYPE_DATE, 4},      {TYPE_TIME_TZ, 8},
               {TYPE_TIMESTAMP_NS, 8}, {TYPE_UUID, 16},     {TYPE_INTERVAL, 16}, {TYPE_DECIMAL, 16},
               {TYPE_NULL, 0},         {TYPE_VARCHAR, 0},   {TYPE_BIT, 0},       {TYPE_LIST, 0},
               {TYPE_UNION, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(data_type_value_bytes(&(data_type){.kind = cases[i].kind}), cases[i].bytes);
  }
  static const struct {
    size_t n_names, bytes;
  } enums[] = {{1, 1}, {255, 1}, {256, 2}, {65535, 2}, {65536, 4}};
  for (size_t i = 0; i < sizeof enums / sizeof enums[0]; i++) {
    data_type of = {.kind = TYPE_ENUM, .n_names = enums[i].n_names};
    assert_int_equal(data_type_value_bytes(&of), enums[i].bytes);
  }
}

static void type_copy_is_equal_and_its_own(void **state) {
  (void)state;
  arena *a = arena_new();
  const data_type *copy = data_type_copy(&deep, a);
  assert_true(data_type_equal(copy, &deep));
  assert_true(copy->names[0] != deep.names[0]);
  assert_true(data_type_contains(copy, TYPE_HUGEINT));
  assert_false(data_type_contains(copy, TYPE_ENUM));
  assert_false(data_type_equal(&list, &array));
  data_type other = row;
  static const char *const other_names[] = {"a\"b", "c"};
  other.names = other_names;
  assert_false(data_type_equal(&row, &other));
  data_type wider = decimal;
  wider.width = 16;
  assert_false(data_type_equal(&decimal, &wider));
  arena_free(a);
}

static void schema_copy_without_memory_fails_cleanly(void **state) {
  (void)state;
  column columns[] = {{"a", &deep}, {"", &mood}};
  schema from = {2, columns};
  for (uint64_t n = 1;; n++) {
    arena *a = arena_new();
    schema to = {0};
    mem_fail_after(n);
    hf_status status = schema_copy(&from, a, &to, NULL);
    mem_fail_after(0);
    bool is_equal = status == HF_OK && schema_equal(&from, &to);
    arena_free(a);
    if (status == HF_OK) {
      assert_true(is_equal);
      return;
    }
    assert_int_equal(status, HF_E_OUT_OF_MEMORY);
  }
}

/* Every kind to Arrow and back; an ENUM becomes text. */
static void type_of_every_kind_survives_arrow(void **state) {
  (void)state;
  data_type plain[TYPE_KIND_COUNT];
  column columns[TYPE_KIND_COUNT + 1];
  size_t n = 0;
  for (int kind = 0; kind < TYPE_LIST; kind++) {
    plain[kind] = (data_type){.kind = (type_kind)kind};
    if (kind == TYPE_DECIMAL) {
      plain[kind] = decimal;
    } else if (kind == TYPE_ENUM) {
      plain[kind] = mood;
    }
    columns[n++] = (column){type_kind_name((type_kind)kind), &plain[kind]};
  }
  columns[n++] = (column){"list", &list};
  columns[n++] = (column){"array", &array};
  columns[n++] = (column){"row", &row};
  columns[n++] = (column){"map", &map};
  columns[n++] = (column){"either", &either};
  columns[n++] = (column){"deep", &deep};
  schema all = {n, columns};
  struct ArrowSchema made;
  struct ArrowSchema block_schema;
  struct ArrowSchema client;
  assert_int_equal(arrow_schema_of_columns(&all, &made, NULL), HF_OK);
  assert_int_equal(arrow_block_schema(&made, &block_schema, NULL), HF_OK);
  assert_true(arrow_schemas_alike(&made, &block_schema));
  assert_int_equal(arrow_client_schema(&block_schema, NULL, &client, NULL), HF_OK);
  arena *a = arena_new();
  for (size_t i = 0; i < n; i++) {
    const data_type *expected = columns[i].type->kind == TYPE_ENUM ? &varchar : columns[i].type;
    const data_type *found = NULL;
    hf_error error = {0};
    if (data_type_from_arrow(made.children[i], a, &found, &error) != HF_OK) {
      fail_msg("%s: %s", columns[i].name, error.message);
    }
    if (!data_type_equal(found, expected)) {
      fail_msg("%s: another type", columns[i].name);
    }
    assert_int_equal(data_type_from_arrow(client.children[i], a, &found, &error), HF_OK);
    assert_true(data_type_equal(found, expected));
    assert_string_equal(made.children[i]->name, columns[i].name);
  }
  arena_free(a);
  made.release(&made);
  block_schema.release(&block_schema);
  client.release(&client);
}

static void type_of_client_formats(void **state) {
  (void)state;
  static const struct {
    const char *format, *sql;
  } cases[] = {
      {"b", "BOOLEAN"},
      {"U", "VARCHAR"},
      {"vu", "VARCHAR"},
      {"vz", "BLOB"},
      {"w:7", "BLOB"},
      {"tdm", "DATE"},
      {"tts", "TIME"},
      {"ttn", "TIME_NS"},
      {"tss:", "TIMESTAMP_S"},
      {"tsm:UTC", "TIMESTAMP WITH TIME ZONE"},
      {"tDs", "INTERVAL"},
      {"tiM", "INTERVAL"},
      {"d:20,5", "DECIMAL(20,5)"},
      {"C<u>", "VARCHAR"},
      {"+L(C<i>)", "INTEGER[]"},
      {"+ud:3,4(i;u)", "UNION(\"f0\" INTEGER, \"f1\" VARCHAR)"},
      {"+w:2(b)", "BOOLEAN[2]"},
      {"+m(+s(u;i))", "MAP(VARCHAR, INTEGER)"},
  };
  arena *a = arena_new();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct ArrowSchema field;
    const data_type *type;
    buf sql = {0};
    made_schema(cases[i].format, &field);
    assert_int_equal(data_type_from_arrow(&field, a, &type, NULL), HF_OK);
    data_type_to_sql(type, &sql);
    assert_string_equal(buf_cstr(&sql), cases[i].sql);
    buf_reset(&sql);
    field.release(&field);
  }
  arena_free(a);
}

static void type_of_unknown_format_is_named(void **state) {
  (void)state;
  static const char *const formats[] = {"e", "d:50,1", "+vl(i)", "+s", "+s(e)"};
  arena *a = arena_new();
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    struct ArrowSchema field;
    const data_type *type;
    hf_error error = {0};
    made_schema(formats[i], &field);
    assert_int_equal(data_type_from_arrow(&field, a, &type, &error), HF_E_UNSUPPORTED);
    assert_non_null(strstr(error.message, "format"));
    hf_error_reset(&error);
    field.release(&field);
  }
  arena_free(a);
}

/* Metadata as Arrow encodes it: a count, then lengths and bytes. */
static void type_of_extension_with_other_storage_is_refused(void **state) {
  (void)state;
  char metadata[128];
  static const char key[] = "ARROW:extension:name";
  static const char value[] = "arrow.uuid";
  int32_t numbers[] = {1, (int32_t)strlen(key), (int32_t)strlen(value)};
  char *at = metadata;
  memcpy(at, numbers, 8);
  memcpy(at + 8, key, strlen(key));
  memcpy(at + 8 + strlen(key), &numbers[2], 4);
  memcpy(at + 12 + strlen(key), value, strlen(value));
  arena *a = arena_new();
  struct ArrowSchema field;
  const data_type *type;
  made_schema("w:16", &field);
  field.metadata = metadata;
  assert_int_equal(data_type_from_arrow(&field, a, &type, NULL), HF_OK);
  assert_int_equal(type->kind, TYPE_UUID);
  field.release(&field);
  made_schema("i", &field);
  field.metadata = metadata;
  assert_int_equal(data_type_from_arrow(&field, a, &type, NULL), HF_E_UNSUPPORTED);
  field.release(&field);
  arena_free(a);
}

static void type_decimals_of_128_bits_are_alike_however_written(void **state) {
  (void)state;
  static const struct {
    const char *a, *b;
    bool alike;
  } cases[] = {{"+s(d:38,2)", "+s(d:38,2,128)", true},    {"+s(d:38,2,128)", "+s(d:38,2,128)", true},
               {"+s(d:38,2)", "+s(d:38,12)", false},      {"+s(d:10,2,64)", "+s(d:10,2,32)", false},
               {"+s(d:10,2,64)", "+s(d:10,2)", false},    {"+s(+l(d:38,2))", "+s(+l(d:38,2,128))", true},
               {"+s(d:38,2,128)", "+s(d:3,2,128)", false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct ArrowSchema a, b;
    made_schema(cases[i].a, &a);
    made_schema(cases[i].b, &b);
    assert_int_equal(arrow_schemas_alike(&a, &b), cases[i].alike);
    a.release(&a);
    b.release(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(type_sql_is_what_duckdb_parses),
      cmocka_unit_test(type_bytes_are_those_of_a_value),
      cmocka_unit_test(type_copy_is_equal_and_its_own),
      cmocka_unit_test(schema_copy_without_memory_fails_cleanly),
      cmocka_unit_test(type_of_every_kind_survives_arrow),
      cmocka_unit_test(type_of_client_formats),
      cmocka_unit_test(type_of_unknown_format_is_named),
      cmocka_unit_test(type_of_extension_with_other_storage_is_refused),
      cmocka_unit_test(type_decimals_of_128_bits_are_alike_however_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
