/* SPDX-License-Identifier: Apache-2.0 */
/* shuffle.compression: holds and shuffles with LZ4 answer as without it, and take fewer bytes. */
#include "support/api_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char QUERY[] =
    "SELECT i, i % 97 AS k, repeat('payload ', (i % 13)::INT) || i AS s, CASE WHEN i % 3 = 0 THEN NULL ELSE i "
    "* 0.25 END AS d, [i, i + 1] AS l, {'a': i, 'b': 'x' || i % 1000} AS r FROM big ORDER BY i";

/* A file of 60,000 rows that tasks can share. */
static void make_big(api_case *c) {
  char sql[600];
  snprintf(sql, sizeof sql, "CREATE VIEW big AS SELECT * FROM '%s'", api_file(c, "big.parquet", ""));
  hf_df *rows = api_sql(c, "SELECT range AS i FROM range(60000)");
  hf_write_options options = {.overwrite = true};
  assert_int_equal(hf_df_write_parquet(rows, api_file(c, "big.parquet", ""), &options, NULL, &c->error),
                   HF_OK);
  hf_df_free(rows);
  api_run(c, sql);
}

/* Holds the query, reads it back warm, in whole and by parts; tells the rows and the bytes held. */
static char *hold_and_read(api_case *c, const char *compression, uint64_t *bytes) {
  char sql[100];
  hf_profile profile;
  snprintf(sql, sizeof sql, "SET shuffle.compression = '%s'", compression);
  api_run(c, sql);
  hf_df *query = api_sql(c, QUERY);
  hf_df *held = api_cache(c, query);
  free(api_rows(c, held, NULL));
  char *rows = api_rows(c, held, &profile);
  assert_int_equal(profile.held_hits, 1);
  assert_int_equal(profile.held_fills, 0);
  *bytes = api_storage(c, held).bytes;
  assert_int_equal(hf_df_create_view(held, "held", true, NULL), HF_OK);
  api_expect(c,
             "SELECT count(*), sum(i)::BIGINT, sum(length(s))::BIGINT, count(d), sum(r.a)::BIGINT FROM held",
             "60000|1799970000|3168730|40000|1799970000\n");
  api_expect(c, "SELECT count(*), max(s), min(r.b) FROM held WHERE k = 5 AND l[2] > 30000",
             "309|payload payload payload payload payload payload payload payload payload payload payload "
             "payload 59175|x101\n");
  api_expect(
      c,
      "SELECT count(*), sum(n)::BIGINT FROM (SELECT s, count(*) AS n FROM held a JOIN held b USING (s, "
      "i) GROUP BY s)",
      "60000|60000\n");
  hf_df_unpersist(held, true, NULL);
  hf_df_free(held);
  hf_df_free(query);
  return rows;
}

static void compare(api_case *c, const char *tasks) {
  char sql[100];
  uint64_t plain_bytes = 0;
  uint64_t packed_bytes = 0;
  make_big(c);
  snprintf(sql, sizeof sql, "SET tasks = %s", tasks);
  api_run(c, sql);
  char *plain = hold_and_read(c, "none", &plain_bytes);
  char *packed = hold_and_read(c, "lz4", &packed_bytes);
  assert_true(strcmp(plain, packed) == 0);
  assert_true(packed_bytes > 0 && packed_bytes < plain_bytes / 2);
  free(plain);
  free(packed);
}

static void hold_with_lz4_by_one_task_reads_back_equal(void **state) {
  compare(*state, "1");
}

static void hold_with_lz4_by_three_tasks_reads_back_equal(void **state) {
  compare(*state, "3");
}

/* The column "bytes" of SHOW CACHE of the only hold. */
static uint64_t shown_bytes(api_case *c, const char *compression) {
  char sql[100];
  snprintf(sql, sizeof sql, "SET shuffle.compression = '%s'", compression);
  api_run(c, sql);
  api_run(c, "CACHE TABLE t AS SELECT i, 'some text ' || i AS s FROM range(50000) r(i)");
  hf_df *show = api_sql(c, "SHOW CACHE");
  char *rows = api_rows(c, show, NULL);
  const char *at = strstr(rows, "|MEMORY_AND_DISK_DESER|50000|");
  assert_non_null(at);
  uint64_t bytes = strtoull(at + strlen("|MEMORY_AND_DISK_DESER|50000|"), NULL, 10);
  free(rows);
  hf_df_free(show);
  api_expect(c, "SELECT sum(i)::BIGINT, max(s) FROM t", "1249975000|some text 9999\n");
  api_run(c, "UNCACHE TABLE t");
  return bytes;
}

static void show_cache_tells_fewer_bytes_with_lz4(void **state) {
  api_case *c = *state;
  uint64_t plain = shown_bytes(c, "none");
  uint64_t packed = shown_bytes(c, "lz4");
  assert_true(packed > 0 && packed < plain / 2);
}

static void compression_that_is_not_known_is_refused(void **state) {
  api_case *c = *state;
  api_fails(c, "SET shuffle.compression = 'zip'", HF_E_SETTING_VALUE);
  assert_int_equal(hf_session_set(c->session, "shuffle.compression", "LZ4", NULL), HF_OK);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open_two_slots, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(hold_with_lz4_by_one_task_reads_back_equal),
      CASE(hold_with_lz4_by_three_tasks_reads_back_equal),
      CASE(show_cache_tells_fewer_bytes_with_lz4),
      CASE(compression_that_is_not_known_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
