/* SPDX-License-Identifier: Apache-2.0 */
/* Formats by file name, and reader options given as text: what is accepted and how it is spelled. */
#include "source/option.h"
#include "source/reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void format_follows_the_ending(void **state) {
  static const struct {
    const char *path;
    int format; /* -1: none */
  } cases[] = {
      {"a.parquet", SOURCE_PARQUET},
      {"d/A.PARQUET", SOURCE_PARQUET},
      {"*.parquet", SOURCE_PARQUET},
      {"a.csv", SOURCE_CSV},
      {"a.tsv", SOURCE_CSV},
      {"a.csv.gz", SOURCE_CSV},
      {"a.csv.zst", SOURCE_CSV},
      {"a.json", SOURCE_JSON},
      {"a.jsonl", SOURCE_JSON},
      {"a.ndjson.gz", SOURCE_JSON},
      {".csv", SOURCE_CSV},
      {"a.txt", -1},
      {"a.gz", -1},
      {"csv", -1},
      {"", -1},
      {"a.csv.bak", -1},
      {"a.db", -1},
      {"parquet", -1},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    source_format format = SOURCE_PARQUET;
    bool known = source_format_of_path(cases[i].path, &format);
    if (known != (cases[i].format >= 0) || (known && (int)format != cases[i].format)) {
      fail_msg("%s", cases[i].path);
    }
  }
}

static void option_given_as_text_is_spelled_as_sql(void **state) {
  static const struct {
    source_format format;
    const char *name, *text, *sql; /* sql NULL: refused */
  } cases[] = {
      {SOURCE_CSV, "header", "true", "true"},
      {SOURCE_CSV, "HEADER", "FALSE", "FALSE"},
      {SOURCE_CSV, "header", "yes", NULL},
      {SOURCE_CSV, "header", "true, x = 1", NULL},
      {SOURCE_CSV, "skip", "3", "3"},
      {SOURCE_CSV, "sample_size", "-1", "-1"},
      {SOURCE_CSV, "skip", "3 + 1", NULL},
      {SOURCE_CSV, "skip", "", NULL},
      {SOURCE_CSV, "delim", ";", "';'"},
      {SOURCE_CSV, "delim", "'", "''''"},
      {SOURCE_CSV, "delim", "1", "'1'"},
      {SOURCE_CSV, "dateformat", "%d/%m/%Y", "'%d/%m/%Y'"},
      {SOURCE_CSV, "quote", "", "''"},
      {SOURCE_CSV, "nullstr", "N/A", "'N/A'"},
      {SOURCE_CSV, "nullstr", "['', 'N/A']", "['', 'N/A']"},
      {SOURCE_CSV, "nullstr", "[x", "'[x'"},
      {SOURCE_CSV, "names", "['a', 'b c', 'd''e']", "['a', 'b c', 'd''e']"},
      {SOURCE_CSV, "types", "{'a': 'DECIMAL(5,2)', b: 'INT'}", "{'a': 'DECIMAL(5,2)', b: 'INT'}"},
      {SOURCE_CSV, "types", "['INT'] , x = 1", NULL},
      {SOURCE_CSV, "types", "[getenv('HOME')]", NULL},
      {SOURCE_CSV, "types", "['a' || 'b']", NULL},
      {SOURCE_CSV, "types", "['a'", NULL},
      {SOURCE_CSV, "types", "['a'}", NULL},
      {SOURCE_CSV, "types", "INT", NULL},
      {SOURCE_CSV, "types", "['a'];", NULL},
      {SOURCE_CSV, "types", "['a' -- ]", NULL},
      {SOURCE_PARQUET, "delim", ";", NULL},
      {SOURCE_PARQUET, "binary_as_string", "true", "true"},
      {SOURCE_JSON, "records", "auto", "'auto'"},
      {SOURCE_JSON, "field_appearance_threshold", "0.1", "0.1"},
      {SOURCE_JSON, "nope", "1", NULL},
  };
  (void)state;
  arena *a = arena_new();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *sql = NULL;
    hf_error error = {0};
    hf_status status =
        source_option_from_text(cases[i].format, cases[i].name, cases[i].text, a, &sql, &error);
    bool right = cases[i].sql == NULL ? status == HF_E_INVALID_ARGUMENT && sql == NULL
                                      : status == HF_OK && strcmp(sql, cases[i].sql) == 0;
    if (!right) {
      fail_msg("%s = %s: %s %s", cases[i].name, cases[i].text, hf_status_name(status), sql);
    }
    hf_error_reset(&error);
  }
  arena_free(a);
}

static void option_unknown_suggests_the_nearest(void **state) {
  (void)state;
  hf_error error = {0};
  assert_int_equal(source_option_check(SOURCE_CSV, "heade", &error), HF_E_INVALID_ARGUMENT);
  assert_string_equal(error.hint, "did you mean header?");
  hf_error_reset(&error);
  assert_int_equal(source_option_check(SOURCE_CSV, "Header", &error), HF_OK);
}

static void reader_text_takes_files_of_its_groups(void **state) {
  static const char *const paths[] = {"/a", "/b'", "/c*", "/d"};
  (void)state;
  buf text = {0}, out = {0};
  source_scan_sql("read_x(" READER_FILES ", y = 1)", paths, 3, &out);
  assert_string_equal(buf_cstr(&out), "read_x(['/a', '/b''', '/c[*]'], y = 1)");
  buf_reset(&out);
  reader_begin_group(&text, "f(" READER_FILES ")");
  reader_add_path(&text, "/a");
  reader_add_path(&text, "/d");
  reader_begin_group(&text, "(SELECT x FROM g(" READER_FILES "))");
  reader_add_path(&text, "/b'");
  reader_add_path(&text, "/c*");
  source_scan_sql(buf_cstr(&text), paths, 4, &out);
  assert_string_equal(buf_cstr(&out),
                      "(SELECT * FROM f(['/a']) UNION ALL SELECT * FROM (SELECT x FROM g(['/b''', "
                      "'/c[*]'])) UNION ALL SELECT * FROM f(['/d']))");
  buf_reset(&out);
  source_scan_sql(buf_cstr(&text), paths + 1, 1, &out);
  assert_string_equal(buf_cstr(&out), "(SELECT * FROM (SELECT x FROM g(['/b'''])))");
  buf_reset(&out);
  buf_reset(&text);
}

/* An expression for each path would cost kilobytes. */
static void reader_text_takes_very_many_files_as_one_text(void **state) {
  enum { MANY = 101 };
  const char *paths[MANY];
  (void)state;
  buf out = {0};
  for (size_t i = 0; i < MANY; i++) {
    paths[i] = i == 1 ? "/b'*" : "/a";
  }
  source_scan_sql("read_x(" READER_FILES ")", paths, MANY, &out);
  assert_ptr_equal(strstr(buf_cstr(&out), "read_x(string_split('/a\n/b''[*]\n/a\n"), out.data);
  assert_string_equal(buf_cstr(&out) + out.length - strlen("\n/a', chr(10)))"), "\n/a', chr(10)))");
  buf_reset(&out);
  paths[1] = "/a line\nbreak";
  source_scan_sql("read_x(" READER_FILES ")", paths, MANY, &out);
  assert_ptr_equal(strstr(buf_cstr(&out), "read_x(['/a', '/a line\nbreak', "), out.data);
  buf_reset(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(format_follows_the_ending),
      cmocka_unit_test(option_given_as_text_is_spelled_as_sql),
      cmocka_unit_test(option_unknown_suggests_the_nearest),
      cmocka_unit_test(reader_text_takes_files_of_its_groups),
      cmocka_unit_test(reader_text_takes_very_many_files_as_one_text),
  };
  return cmocka_run_group_tests_name("option", tests, NULL, NULL);
}
