/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting sources: the rows of all shares add up to the source's, in its order; where shares are cut. */
#include "source/source.h"
#include "support/plan_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_SHARES = 9 };

/* The source of a call such as read_parquet('@/x.parquet'); lives as long as the case. */
static source *resolve(plan_case *c, const char *call) {
  relation *r = plan_relation(c, arena_printf(c->memory, "SELECT * FROM %s", call));
  lowered l = plan_lowered(c, r);
  assert_int_equal(l.n_inputs, 1);
  source *s = l.inputs[0].source;
  relation_release(r);
  return s;
}

/* What plain DuckDB reads of a share: its first column, in order. */
static const char *share_rows(plan_case *c, const source *s, const source_share *share, const char *first) {
  buf sql = {0};
  buf_printf(&sql, "SELECT string_agg(%s, ' ') FROM (", first);
  buf_printf(&sql, "SELECT * FROM (SELECT NULL::BIGINT AS %s WHERE false)", first);
  for (size_t i = 0; i < share->n_parts; i++) {
    const source_part *part = &share->parts[i];
    buf_printf(&sql, " UNION ALL SELECT %s FROM ", first);
    if (part->count == 0) {
      source_scan_sql(source_reader_text(s), &part->path, 1, &sql);
    } else {
      source_range_sql(source_reader_text(s), part->path, part->first, part->count, &sql);
    }
  }
  buf_text(&sql, ")");
  const char *answer = plan_rows(c, buf_cstr(&sql));
  buf_reset(&sql);
  answer = strchr(answer, '\n') + 1;
  return strcmp(answer, "NULL\n") == 0 ? "" : answer;
}

static hf_status split(plan_case *c, source *s, size_t n, source_share *shares) {
  source_split_options options = {.n = n};
  return source_split(c->sources, s, &options, c->memory, shares, NULL);
}

/* One scan reads the share. */
static bool is_one_scan(const source_share *share) {
  bool has_parts = false;
  for (size_t i = 0; i < share->n_parts; i++) {
    has_parts = has_parts || share->parts[i].count > 0;
  }
  return !has_parts || share->n_parts == 1;
}

/* Splits: the shares' rows one behind the other must be all rows. */
static void assert_split(plan_case *c, const char *call, const char *first, source_split_options options) {
  size_t n = options.n;
  source *s = resolve(c, call);
  source_share shares[MOST_SHARES];
  hf_error error = {0};
  if (source_split(c->sources, s, &options, c->memory, shares, &error) != HF_OK) {
    fail_msg("%s: %s", call, error.message);
  }
  buf joined = {0};
  for (size_t t = 0; t < n; t++) {
    assert_true(!options.in_order || is_one_scan(&shares[t]));
    const char *rows = share_rows(c, s, &shares[t], first);
    if (rows[0] != '\0') {
      buf_text(&joined, joined.length == 0 ? "" : " ");
      buf_append(&joined, rows, strcspn(rows, "\n"));
    }
  }
  const char *all =
      plan_rows(c, arena_printf(c->memory, "SELECT string_agg(%s, ' ') FROM %s", first, plan_text(c, call)));
  all = strchr(all, '\n') + 1;
  all = strcmp(all, "NULL\n") == 0 ? "" : all;
  assert_int_equal(joined.length, strcspn(all, "\n"));
  assert_memory_equal(buf_cstr(&joined), all, joined.length);
  buf_reset(&joined);
}

static void assert_adds_up(plan_case *c, const char *call, const char *first, size_t n) {
  assert_split(c, call, first, (source_split_options){.n = n});
  assert_split(c, call, first, (source_split_options){.n = n, .in_order = true});
}

static void write_parquet(plan_case *c) {
  plan_exec(c, "COPY (SELECT i AS x FROM range(10000) t(i)) TO '@/a.parquet' (ROW_GROUP_SIZE 2048)");
  plan_exec(c, "COPY (SELECT i + 10000 AS x FROM range(100) t(i)) TO '@/b.parquet'");
  plan_exec(c, "COPY (SELECT i AS x FROM range(0) t(i)) TO '@/c.parquet'");
  plan_exec(
      c,
      "COPY (SELECT i + 10100 AS x, i AS extra FROM range(5000) t(i)) TO '@/d.parquet' (ROW_GROUP_SIZE 2048)");
}

static void split_of_parquet_adds_up_in_order(void **state) {
  plan_case *c = *state;
  write_parquet(c);
  for (size_t n = 1; n <= MOST_SHARES; n++) {
    assert_adds_up(c, "read_parquet('@/a.parquet')", "x", n);
    assert_adds_up(c, "read_parquet(['@/a.parquet', '@/b.parquet', '@/c.parquet', '@/d.parquet'])", "x", n);
    assert_adds_up(c, "read_parquet(['@/d.parquet', '@/b.parquet'], union_by_name = true, filename = true)",
                   "x", n);
    assert_adds_up(c, "read_parquet('@/c.parquet')", "x", n);
  }
}

static void split_of_parquet_cuts_at_row_groups_where_they_are_near(void **state) {
  plan_case *c = *state;
  write_parquet(c);
  source *s = resolve(c, "read_parquet('@/a.parquet')"); /* 4 groups of 2,048, one of 1,808 */
  source_share shares[5];
  assert_int_equal(split(c, s, 5, shares), HF_OK);
  for (size_t t = 0; t < 5; t++) {
    assert_int_equal(shares[t].n_parts, 1);
    assert_true(shares[t].parts[0].first == 2048 * t);
  }
  assert_int_equal(split(c, s, 2, shares), HF_OK);
  assert_true(shares[1].parts[0].first == 4096);
  plan_exec(c, "COPY (SELECT i AS x FROM range(1000) t(i)) TO '@/one.parquet'");
  s = resolve(c, "read_parquet('@/one.parquet')"); /* one group: cut inside */
  assert_int_equal(split(c, s, 4, shares), HF_OK);
  assert_true(shares[2].parts[0].first == 500 && shares[2].parts[0].count == 250);
  assert_true(shares[3].parts[0].first == 750 && shares[3].parts[0].count == SOURCE_END - 750);
}

static void split_in_one_is_all_files_whole(void **state) {
  plan_case *c = *state;
  write_parquet(c);
  source *s = resolve(c, "read_parquet(['@/a.parquet', '@/b.parquet'])");
  source_share share;
  assert_int_equal(split(c, s, 1, &share), HF_OK);
  assert_int_equal(share.n_parts, 2);
  assert_true(share.parts[0].count == 0 && share.parts[1].count == 0);
}

static void split_of_csv_deals_out_whole_files(void **state) {
  plan_case *c = *state;
  plan_file(c, "1.csv", "x\n1\n2\n");
  plan_file(c, "2.csv", "x\n3\n");
  plan_file(c, "3.csv", "x\n4\n5\n");
  plan_file(c, "4.csv", "x\n6\n7\n");
  for (size_t n = 1; n <= MOST_SHARES; n++) {
    assert_adds_up(c, "read_csv('@/?.csv')", "x", n);
  }
  source *s = resolve(c, "read_csv('@/?.csv')");
  source_share shares[4];
  assert_int_equal(split(c, s, 4, shares), HF_OK);
  for (size_t t = 0; t < 4; t++) {
    assert_int_equal(shares[t].n_parts, 1);
  }
  assert_true(source_can_split(s));
  assert_false(source_can_split(resolve(c, "read_csv('@/1.csv')")));
}

static void split_of_parquet_with_row_numbers_of_its_own_keeps_files_whole(void **state) {
  plan_case *c = *state;
  plan_exec(c, "COPY (SELECT i AS x, 0 AS file_row_number FROM range(5000) t(i)) TO '@/own.parquet'");
  assert_adds_up(c, "read_parquet('@/own.parquet')", "x", 3);
  assert_false(source_can_split(resolve(c, "read_parquet('@/own.parquet')")));
}

static void split_of_parquet_with_the_readers_row_numbers_keeps_them(void **state) {
  plan_case *c = *state;
  write_parquet(c);
  assert_adds_up(c, "read_parquet('@/a.parquet', file_row_number = true)", "x", 3);
  assert_adds_up(c, "read_parquet('@/a.parquet', file_row_number = true)", "file_row_number", 4);
  assert_true(source_can_split(resolve(c, "read_parquet('@/a.parquet', file_row_number = true)")));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(split_of_parquet_adds_up_in_order, plan_case_open, plan_case_close),
      cmocka_unit_test_setup_teardown(split_of_parquet_cuts_at_row_groups_where_they_are_near, plan_case_open,
                                      plan_case_close),
      cmocka_unit_test_setup_teardown(split_in_one_is_all_files_whole, plan_case_open, plan_case_close),
      cmocka_unit_test_setup_teardown(split_of_csv_deals_out_whole_files, plan_case_open, plan_case_close),
      cmocka_unit_test_setup_teardown(split_of_parquet_with_row_numbers_of_its_own_keeps_files_whole,
                                      plan_case_open, plan_case_close),
      cmocka_unit_test_setup_teardown(split_of_parquet_with_the_readers_row_numbers_keeps_them,
                                      plan_case_open, plan_case_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
