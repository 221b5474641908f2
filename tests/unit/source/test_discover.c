/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discovery: for many files the reader's text, in which everything is spelled
 * out, reads exactly what DuckDB reads by itself; and columns, rows and bytes of
 * a source are what they are.
 */
#include "support/plan_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A call as the user writes it; spelled: the text must sniff nothing. */
typedef struct reading {
  const char *call;
  bool spelled;
} reading;

static void write_csv_files(plan_case *c) {
  plan_file(c, "header.csv", "a,b\n1,x\n2,y\n");
  plan_file(c, "plain.csv", "1,2.5,x\n3,4.5,y\n");
  plan_file(c, "semicolon.csv", "id;name;d\n1;\"x;y\";31/12/2020\n2;z;01/02/2021\n");
  plan_file(c, "tab.tsv", "a\tb\n1\tone\n2\ttwo\n");
  plan_file(c, "pipe.csv", "a|b\n1|one\n2|two\n");
  plan_file(c, "single_quotes.csv", "p,q\n'x,y',1\n'z',2\n");
  plan_file(c, "escapes.csv", "p,q\n\"say \"\"hi\"\", x\",1\n\"\",2\n");
  plan_file(c, "nulls.csv", "a,b,c\n1,,x\n,2.5,\n3,NULL,NULL\n");
  plan_file(c, "dates.csv", "d,t\n2020-01-31,2020-01-31 10:11:12\n2020-02-01,2020-02-01 00:00:00.5\n");
  plan_file(c, "us_dates.csv", "d,t\n01/31/2020,01/31/2020 10:11:12 PM\n02/01/2020,02/01/2020 01:00:00 AM\n");
  plan_file(c, "types.csv", "i,f,b,s,tm\n1,1.5,true,abc,10:11:12\n2,2e3,false,def,00:00:00\n");
  plan_file(c, "crlf.csv", "a,b\r\n1,x\r\n2,y\r\n");
  plan_file(c, "no_end.csv", "a,b\n1,x\n2,y");
  plan_file(c, "one_column.csv", "name\nx\ny\n");
  plan_file(c, "header_only.csv", "a,b\n");
  plan_file(c, "comment.csv", "# made by hand\n# second\na,b\n1,x\n2,y\n");
  plan_file(c, "preamble.csv", "Report of today\n\na,b,c\n1,2,3\n4,5,6\n");
  plan_file(c, "multiline.csv", "a,b\n1,\"two\nlines\"\n2,y\n");
  plan_file(c, "odd_names.csv", "\"a b\",\"x\"\"y\",'q',SELECT,größe,a b\n1,2,3,4,5,6\n7,8,9,10,11,12\n");
  plan_file(c, "repeated.csv", "a,a,A\n1,2,3\n4,5,6\n");
  plan_file(c, "unicode.csv", "größe,ort\n1,Köln\n2,🦆\n");
  plan_file(c, "zeros.csv", "id,n\n007,1\n010,2\n");
  plan_file(c, "big.csv", "n\n9223372036854775807\n9223372036854775808\n");
  plan_file(c, "short_rows.csv", "a,b,c\n1,2\n3,4,5\n");
  plan_file(c, "decimals.csv", "a;b\n1,5;x\n2,25;y\n");
  plan_file(c, "multi/1.csv", "a,b\n1,x\n2,y\n");
  plan_file(c, "multi/2.csv", "a,b\n3,z\n");
  plan_file(c, "mixed/1.csv", "a,b\n1,x\n2,y\n");
  plan_file(c, "mixed/2.csv", "b;a\nz;3\n");
  plan_file(c, "mixed/3.csv", "a,b\nword,w\n");
  plan_file(c, "wide/1.csv", "a,b\n1,x\n");
  plan_file(c, "wide/2.csv", "a,b,c\n2,y,7\n");
  plan_file(c, "union/1.csv", "a,b\n1,x\n");
  plan_file(c, "union/2.csv", "c,a\n2020-01-01,2\n");
  plan_file(c, "empty_one/1.csv", "a,b\n");
  plan_file(c, "empty_one/2.csv", "a,b\n2,y\n");
  plan_file(c, "hive/year=2020/month=01/x.csv", "a\n1\n");
  plan_file(c, "hive/year=2021/month=12/x.csv", "a\n2\n");
  plan_file(c, "hive_text/k=1/x.csv", "a\n1\n");
  plan_file(c, "hive_text/k=b c/x.csv", "a\n2\n");
  plan_file(c, "it's [1].csv", "a\n1\n");
  plan_file(c, "zero.csv", "");
}

static const reading CSV_READINGS[] = {
    {"read_csv('@/header.csv')", true},
    {"read_csv('@/plain.csv')", true},
    {"read_csv('@/semicolon.csv')", true},
    {"read_csv('@/tab.tsv')", true},
    {"read_csv('@/pipe.csv')", true},
    {"read_csv('@/single_quotes.csv')", true},
    {"read_csv('@/escapes.csv')", true},
    {"read_csv('@/nulls.csv')", true},
    {"read_csv('@/nulls.csv', nullstr = 'NULL')", true},
    {"read_csv('@/nulls.csv', nullstr = ['NULL', 'x'])", true},
    {"read_csv('@/dates.csv')", true},
    {"read_csv('@/us_dates.csv')", true},
    {"read_csv('@/us_dates.csv', dateformat = '%m/%d/%Y')", true},
    {"read_csv('@/types.csv')", true},
    {"read_csv('@/types.csv', all_varchar = true)", true},
    {"read_csv('@/crlf.csv')", true},
    {"read_csv('@/no_end.csv')", true},
    {"read_csv('@/one_column.csv')", true},
    {"read_csv('@/header_only.csv')", true},
    {"read_csv('@/comment.csv')", true},
    {"read_csv('@/comment.csv', comment = '#')", true},
    {"read_csv('@/preamble.csv')", true},
    {"read_csv('@/preamble.csv', skip = 2)", true},
    {"read_csv('@/multiline.csv')", true},
    {"read_csv('@/odd_names.csv')", true},
    {"read_csv('@/odd_names.csv', normalize_names = true)", true},
    {"read_csv('@/repeated.csv')", true},
    {"read_csv('@/unicode.csv')", true},
    {"read_csv('@/zeros.csv')", true},
    {"read_csv('@/zeros.csv', types = {'id': 'VARCHAR'})", true},
    {"read_csv('@/zeros.csv', dtypes = ['VARCHAR', 'DOUBLE'])", true},
    {"read_csv('@/zeros.csv', column_types = {'n': 'DECIMAL(9,2)'}, names = ['x', 'n'])", true},
    {"read_csv('@/zeros.csv', names = ['x', 'y'])", true},
    {"read_csv('@/zeros.csv', header = false)", true},
    {"read_csv('@/zeros.csv', columns = {'x': 'VARCHAR', 'y': 'INTEGER'})", true},
    {"read_csv('@/zeros.csv', columns = {'x': 'VARCHAR', 'y': 'VARCHAR'}, header = false)", true},
    {"read_csv('@/zeros.csv', auto_detect = false, columns = {'x': 'VARCHAR', 'y': 'VARCHAR'}, header = true)",
     true},
    {"read_csv('@/big.csv')", true},
    {"read_csv('@/short_rows.csv', null_padding = true)", true},
    {"read_csv('@/short_rows.csv', ignore_errors = true)", true},
    {"read_csv('@/decimals.csv', decimal_separator = ',')", true},
    {"read_csv('@/header.csv', delim = ',', quote = '', escape = '')", true},
    {"read_csv('@/header.csv', sep = ';')", true},
    {"read_csv('@/header.csv', filename = true)", true},
    {"read_csv('@/header.csv', sample_size = 1)", true},
    {"read_csv('@/header.csv', auto_type_candidates = ['VARCHAR', 'DOUBLE'])", true},
    {"read_csv('@/header.csv', force_not_null = ['b'])", true},
    {"read_csv('@/multi/*.csv')", true},
    {"read_csv(['@/multi/2.csv', '@/multi/1.csv'])", true},
    {"read_csv(['@/multi/1.csv', '@/multi/1.csv'])", true},
    {"read_csv('@/multi/*.csv', filename = true)", true},
    {"read_csv('@/multi/*.csv', filename = 'file')", true},
    {"read_csv('@/mixed/*.csv')", true},
    {"read_csv(['@/mixed/2.csv', '@/mixed/1.csv'])", true},
    {"read_csv('@/wide/*.csv')", true},
    {"read_csv('@/wide/*.csv', union_by_name = true)", true},
    {"read_csv('@/union/*.csv', union_by_name = true)", true},
    {"read_csv('@/union/*.csv', union_by_name = true, filename = true)", true},
    {"read_csv('@/empty_one/*.csv')", true},
    {"read_csv('@/hive/*/*/*.csv')", true},
    {"read_csv('@/hive/**/*.csv')", true},
    {"read_csv('@/hive/**/*.csv', hive_partitioning = false)", true},
    {"read_csv('@/hive/**/*.csv', hive_types = {'year': 'VARCHAR'})", true},
    {"read_csv('@/hive/**/*.csv', hive_types_autocast = false)", true},
    {"read_csv('@/hive/**/*.csv', filename = true)", true},
    {"read_csv('@/hive_text/*/*.csv')", true},
    {"read_csv('@/header.csv.gz')", true},
    {"read_csv('@/zero.csv')", true},
    {"read_csv('@/it''s [[]1].csv')", true},
};

static const reading JSON_READINGS[] = {
    {"read_json('@/nd.json')", true},
    {"read_json('@/array.json')", true},
    {"read_json('@/pretty.json')", true},
    {"read_json('@/nested.json')", true},
    {"read_json('@/numbers.json')", true},
    {"read_json('@/lone.json')", true},
    {"read_json('@/lone.json', records = 'false')", true},
    {"read_json('@/collide.json')", false},
    {"read_json('@/iso_dates.json')", true},
    {"read_json('@/us_dates.json')", true},
    {"read_json('@/stamps.json')", true},
    {"read_json('@/missing.json')", true},
    {"read_json('@/maps.json')", true},
    {"read_json('@/uuids.json')", true},
    {"read_json('@/nd.json', format = 'newline_delimited')", true},
    {"read_json('@/nd.json', columns = {'b': 'VARCHAR', 'c': 'INTEGER'})", true},
    {"read_json('@/nd.json', filename = true)", true},
    {"read_json('@/nd.json', maximum_depth = 1)", true},
    {"read_json(['@/nd.json', '@/missing.json'])", true},
    {"read_json(['@/nd.json', '@/missing.json'], union_by_name = true)", true},
    {"read_json('@/hive/**/*.json')", true},
    {"read_json('@/nd.json.gz')", true},
};

static void write_json_files(plan_case *c) {
  plan_file(c, "nd.json", "{\"a\":1,\"b\":\"x\"}\n{\"a\":2.5,\"b\":\"y\"}\n");
  plan_file(c, "array.json", "[{\"a\":1},{\"a\":2}]");
  plan_file(c, "pretty.json",
            "[\n  {\n    \"a\": 1,\n    \"b\": [1, 2]\n  },\n  {\n    \"a\": 3,\n    \"b\": []\n  }\n]\n");
  plan_file(c, "nested.json", "{\"a\":{\"b\":[{\"c\":1}],\"d\":null}}\n{\"a\":{\"b\":[],\"d\":\"x\"}}\n");
  plan_file(c, "numbers.json", "[1, 2, 3]");
  plan_file(c, "lone.json", "{\"json\":1}\n{\"json\":2}\n");
  plan_file(c, "collide.json", "{\"id\":1,\"Id\":2}\n{\"id\":3,\"Id\":4}\n");
  plan_file(c, "iso_dates.json", "{\"d\":\"2020-01-31\"}\n{\"d\":\"2020-02-01\"}\n");
  plan_file(c, "us_dates.json", "{\"d\":\"01-31-2020\",\"n\":1}\n{\"d\":\"02-28-2020\",\"n\":2}\n");
  plan_file(c, "stamps.json", "{\"t\":\"2020-01-31T10:11:12Z\"}\n{\"t\":\"2020-01-31T10:11:13Z\"}\n");
  plan_file(c, "missing.json", "{\"a\":1}\n{\"b\":\"z\"}\n");
  plan_file(c, "maps.json", "{\"m\":{\"k1\":1,\"k2\":2}}\n{\"m\":{\"k3\":3}}\n");
  plan_file(c, "uuids.json", "{\"u\":\"8f14e45f-ceea-467f-8b39-7a1c0d2e3f40\"}\n");
  plan_file(c, "hive/k=1/x.json", "{\"a\":1}\n");
  plan_file(c, "hive/k=2/x.json", "{\"a\":2}\n");
}

static const reading PARQUET_READINGS[] = {
    {"read_parquet('@/p.parquet')", true},
    {"read_parquet(['@/p.parquet', '@/q.parquet'])", true},
    {"read_parquet(['@/p.parquet', '@/r.parquet'], union_by_name = true)", true},
    {"read_parquet(['@/r.parquet', '@/p.parquet'], union_by_name = true, filename = true)", true},
    {"read_parquet('@/p.parquet', file_row_number = true)", true},
    {"read_parquet('@/part/**/*.parquet')", true},
    {"read_parquet('@/part/**/*.parquet', hive_partitioning = false)", true},
    {"read_parquet('@/part/**/*.parquet', hive_types = {'g': 'UTINYINT'})", true},
    {"read_parquet('@/types.parquet')", true},
    {"read_parquet('@/odd.parquet')", true},
};

static void write_parquet_files(plan_case *c) {
  plan_exec(c, "COPY (SELECT i AS k, 'n' || i AS name FROM range(5) t(i)) TO '@/p.parquet'");
  plan_exec(c, "COPY (SELECT 'm' AS name, 7::BIGINT AS k, 1 AS extra) TO '@/q.parquet'");
  plan_exec(c, "COPY (SELECT 1.5 AS x, 9::SMALLINT AS k) TO '@/r.parquet'");
  plan_exec(
      c,
      "COPY (SELECT i AS v, i % 2 AS g FROM range(6) t(i)) TO '@/part' (FORMAT parquet, PARTITION_BY (g))");
  plan_exec(
      c,
      "COPY (SELECT * EXCLUDE (varint, time_tz, bit, \"union\", small_enum, medium_enum, large_enum, time_ns, geometry) FROM "
      "(SELECT * RENAME (bignum AS varint) FROM test_all_types())) TO '@/types.parquet'");
  plan_exec(c, "COPY (SELECT 1 AS \"a b\", 2 AS \"x\"\"y\", 3 AS größe, 4 AS \"SELECT\") TO '@/odd.parquet'");
}

/* Compares the reader's text with the call itself. */
static bool reads_the_same(plan_case *c, const reading *what) {
  relation *r = plan_relation(c, arena_printf(c->memory, "FROM %s", what->call));
  lowered l = plan_lowered(c, r);
  const source *s = l.inputs[0].source;
  const char *plain = plan_rows(c, arena_printf(c->memory, "FROM %s", plan_text(c, what->call)));
  const char *ours = plan_rows_or_error(c, plan_whole_text(c, &l));
  const char *described =
      arena_printf(c->memory, "SELECT column_name FROM (DESCRIBE FROM %s)", plan_text(c, what->call));
  const char *names = strchr(plan_rows(c, described), '\n') + 1;
  buf found = {0};
  for (size_t i = 0; i < source_columns(s)->n_columns; i++) {
    buf_printf(&found, "%s\n", source_columns(s)->columns[i].name);
  }
  bool is_csv = strstr(what->call, "read_csv") != NULL;
  bool is_spelled = !is_csv || strstr(source_reader_text(s), "auto_detect = false") != NULL;
  is_spelled = is_spelled && (strstr(what->call, "read_json") == NULL ||
                              strstr(source_reader_text(s), "columns = ") != NULL);
  bool same = strcmp(plain, ours) == 0 && strcmp(names, buf_cstr(&found)) == 0 && is_spelled == what->spelled;
  if (!same) {
    print_error("%s\n  reader: %s\n  plain: %s  ours: %s  names: %s  ours: %s", what->call,
                source_reader_text(s), plain, ours, names, buf_cstr(&found));
  }
  buf_reset(&found);
  relation_release(r);
  return same;
}

static void check_readings(plan_case *c, const reading *readings, size_t n) {
  size_t failures = 0;
  for (size_t i = 0; i < n; i++) {
    failures += !reads_the_same(c, &readings[i]);
  }
  assert_int_equal(failures, 0);
}

static void csv_spelled_out_reads_the_same(void **state) {
  plan_case *c = *state;
  write_csv_files(c);
  plan_exec(
      c,
      "COPY (FROM read_csv('@/header.csv', all_varchar = true)) TO '@/header.csv.gz' (FORMAT csv, COMPRESSION gzip)");
  check_readings(c, CSV_READINGS, sizeof CSV_READINGS / sizeof CSV_READINGS[0]);
}

static void json_spelled_out_reads_the_same(void **state) {
  plan_case *c = *state;
  write_json_files(c);
  plan_exec(c, "COPY (FROM read_json('@/nd.json')) TO '@/nd.json.gz' (FORMAT json, COMPRESSION gzip)");
  check_readings(c, JSON_READINGS, sizeof JSON_READINGS / sizeof JSON_READINGS[0]);
}

static void parquet_spelled_out_reads_the_same(void **state) {
  plan_case *c = *state;
  write_parquet_files(c);
  check_readings(c, PARQUET_READINGS, sizeof PARQUET_READINGS / sizeof PARQUET_READINGS[0]);
}

/* A task may get some of the files: it must give the columns of the whole. */
static void part_of_the_files_gives_the_columns_of_the_whole(void **state) {
  static const char *const calls[] = {
      "read_csv('@/mixed/*.csv')",
      "read_csv('@/union/*.csv', union_by_name = true)",
      "read_csv('@/hive_text/*/*.csv')",
      "read_parquet(['@/p.parquet', '@/q.parquet'])",
      "read_parquet(['@/p.parquet', '@/r.parquet'], union_by_name = true)",
      "read_json(['@/nd.json', '@/missing.json'])",
  };
  plan_case *c = *state;
  write_csv_files(c);
  write_json_files(c);
  write_parquet_files(c);
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    relation *r = plan_relation(c, arena_printf(c->memory, "FROM %s", calls[i]));
    lowered l = plan_lowered(c, r);
    const source *s = l.inputs[0].source;
    const char *whole = plan_rows(c, plan_whole_text(c, &l));
    buf rows = {0};
    buf_append(&rows, whole, strcspn(whole, "\n") + 1);
    for (size_t k = 0; k < source_n_files(s); k++) {
      buf text = {0};
      source_scan_sql(source_reader_text(s), &source_files(s)[k].path, 1, &text);
      const char *part = plan_rows(c, arena_printf(c->memory, "FROM %s", buf_cstr(&text)));
      assert_memory_equal(part, whole, strcspn(whole, "\n") + 1);
      buf_text(&rows, strchr(part, '\n') + 1);
      buf_reset(&text);
    }
    assert_string_equal(buf_cstr(&rows), whole);
    buf_reset(&rows);
    relation_release(r);
  }
}

/* ------------------------------------------------------------------- facts */

static source *resolve(plan_case *c, source_format format, const char *path) {
  const char *paths[] = {plan_text(c, path)};
  source_request request = {.format = format, .paths = paths, .n_paths = 1};
  source *s = NULL;
  hf_status status = source_resolve(c->sources, &request, &s, &c->error);
  if (status != HF_OK) {
    fail_msg("%s: %s %s", path, hf_status_name(status), c->error.message);
  }
  return s;
}

static void source_tells_rows_bytes_and_files(void **state) {
  plan_case *c = *state;
  bool exact = false;
  write_parquet_files(c);
  write_csv_files(c);
  source *s = resolve(c, SOURCE_PARQUET, "@/[pq].parquet");
  assert_int_equal(source_rows(s, &exact), 6);
  assert_true(exact);
  assert_int_equal(source_n_files(s), 2);
  assert_int_equal(source_bytes(s), source_files(s)[0].bytes + source_files(s)[1].bytes);
  assert_true(source_files(s)[0].mtime_ns > 0);
  source_release(s);
  s = resolve(c, SOURCE_CSV, "@/header.csv");
  assert_in_range(source_rows(s, &exact), 1, 10);
  assert_false(exact);
  source_release(s);
  source_release(NULL);
}

static void source_unchanged_is_found_again_changed_anew(void **state) {
  plan_case *c = *state;
  plan_file(c, "x.csv", "a\n1\n");
  source *first = resolve(c, SOURCE_CSV, "@/x.csv"), *again = resolve(c, SOURCE_CSV, "@/x.csv");
  assert_ptr_equal(first, again);
  plan_file(c, "x.csv", "a,b\n1,2\n");
  source *changed = resolve(c, SOURCE_CSV, "@/x.csv");
  assert_ptr_not_equal(first, changed);
  assert_int_equal(source_columns(changed)->n_columns, 2);
  assert_int_equal(source_columns(first)->n_columns, 1);
  source_release(first);
  source_release(again);
  source_release(changed);
}

static void file_damaged_is_named(void **state) {
  static const struct {
    const char *path;
    source_format format;
    hf_status code;
    const char *text;
  } cases[] = {
      {"@/cut.parquet", SOURCE_PARQUET, HF_E_FILE_FORMAT, "cut.parquet"},
      {"@/no.parquet", SOURCE_PARQUET, HF_E_FILE_FORMAT, "no.parquet"},
      {"@/zero.parquet", SOURCE_PARQUET, HF_E_FILE_FORMAT, "zero.parquet"},
      {"@/set/*.parquet", SOURCE_PARQUET, HF_E_FILE_FORMAT, "set/"},
      {"@/bad.json", SOURCE_JSON, HF_E_FILE_FORMAT, "bad.json"},
      {"@/binary.csv", SOURCE_CSV, HF_E_FILE_FORMAT, "binary.csv"},
  };
  plan_case *c = *state;
  plan_exec(c, "COPY (SELECT range AS i FROM range(1000)) TO '@/whole.parquet'");
  plan_file(c, "no.parquet", "a,b\n1,2\n");
  plan_file(c, "zero.parquet", "");
  plan_file(c, "bad.json", "{\"a\": 1}\n{\"a\": ");
  plan_file(c, "binary.csv", "a,b\n\xff\xfe\x80,\xc3\x28\n1,2\n");
  plan_file(c, "set/2.parquet", "PAR1 and nothing more");
  plan_exec(c, "COPY (SELECT range AS i FROM range(1000)) TO '@/set/1.parquet'");
  struct stat whole;
  const char *from = plan_text(c, "@/whole.parquet"), *to = plan_text(c, "@/cut.parquet");
  assert_int_equal(stat(from, &whole), 0);
  assert_int_equal(rename(from, to), 0);
  assert_int_equal(truncate(to, whole.st_size / 2), 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *paths[] = {plan_text(c, cases[i].path)};
    source_request request = {.format = cases[i].format, .paths = paths, .n_paths = 1};
    source *s = NULL;
    hf_error error = {0};
    hf_status status = source_resolve(c->sources, &request, &s, &error);
    if (status != cases[i].code || strstr(error.message, cases[i].text) == NULL || s != NULL) {
      fail_msg("%s: %s %s", cases[i].path, hf_status_name(status), error.message);
    }
    hf_error_reset(&error);
  }
}

static void bad_row_fails_when_it_is_read(void **state) {
  plan_case *c = *state;
  buf text = {0};
  buf_text(&text, "a,b\n");
  for (int i = 0; i < 30000; i++) {
    buf_printf(&text, "%d,x\n", i);
  }
  buf_text(&text, "oops,y\n");
  plan_file(c, "late.csv", buf_cstr(&text));
  buf_reset(&text);
  relation *r = plan_relation(c, "SELECT sum(a) FROM '@/late.csv'");
  lowered l = plan_lowered(c, r);
  const char *ours = plan_rows_or_error(c, plan_whole_text(c, &l));
  assert_int_equal(ours[0], '!');
  assert_non_null(strstr(ours, "oops"));
  relation_release(r);
}

static void option_wrong_is_refused(void **state) {
  static const struct {
    source_option option;
    hf_status code;
  } cases[] = {
      {{"nope", "1"}, HF_E_INVALID_ARGUMENT},
      {{"header", "'x'"}, HF_E_CAST},
      {{"types", "{'zz': 'INTEGER'}"}, HF_E_BIND},
      {{"dateformat", "'%Q'"}, HF_E_FILE_FORMAT},
  };
  plan_case *c = *state;
  plan_file(c, "x.csv", "a\n1\n");
  const char *paths[] = {plan_text(c, "@/x.csv")};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    source_request request = {SOURCE_CSV, paths, 1, &cases[i].option, 1, NULL};
    source *s = NULL;
    hf_error error = {0};
    hf_status status = source_resolve(c->sources, &request, &s, &error);
    if (status == HF_OK || error.error_class != HF_CLASS_USER) {
      fail_msg("%s: %s %s", cases[i].option.name, hf_status_name(status), error.message);
    }
    hf_error_reset(&error);
  }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, plan_case_open, plan_case_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(csv_spelled_out_reads_the_same),
      CASE(json_spelled_out_reads_the_same),
      CASE(parquet_spelled_out_reads_the_same),
      CASE(part_of_the_files_gives_the_columns_of_the_whole),
      CASE(source_tells_rows_bytes_and_files),
      CASE(source_unchanged_is_found_again_changed_anew),
      CASE(file_damaged_is_named),
      CASE(bad_row_fails_when_it_is_read),
      CASE(option_wrong_is_refused),
  };
  return cmocka_run_group_tests_name("discover", tests, NULL, NULL);
}
