/* SPDX-License-Identifier: Apache-2.0 */
/* The listing of held results: its fields in every state, and that SHOW CACHE tells the same. */
#include "support/api_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hf_hold *list(api_case *c, hf_session *session, size_t wanted) {
  hf_hold *holds = NULL;
  size_t n = 99;
  if (hf_session_holds(session, &holds, &n, &c->error) != HF_OK) {
    fail_msg("holds: %s", c->error.message);
  }
  assert_int_equal(n, wanted);
  return holds;
}

static void listing_without_holds_is_empty(void **state) {
  api_case *c = *state;
  assert_null(list(c, c->session, 0));
  hf_df *query = api_sql(c, "SELECT 1 AS x");
  assert_null(list(c, c->session, 0));
  hf_df_free(query);
}

static void listing_follows_the_life_of_a_hold(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT i FROM range(1000) t(i)");
  hf_df *held = api_cache(c, query);
  hf_hold *holds = list(c, c->session, 1);
  assert_int_equal(holds[0].storage.state, HF_HOLD_DECLARED);
  assert_null(holds[0].name);
  assert_null(holds[0].last_drop);
  assert_int_equal(strlen(holds[0].session), 36);
  assert_string_equal(holds[0].storage.cache_id, api_storage(c, held).cache_id);
  assert_string_equal(holds[0].storage.level, "MEMORY_AND_DISK_DESER");
  assert_int_equal(holds[0].partitions, 0);
  assert_int_equal(holds[0].compute_us, 0);
  assert_int_equal(holds[0].last_read_us, 0);
  assert_true(holds[0].declared_us > UINT64_C(1700000000000000));
  hf_holds_free(holds);

  for (int i = 0; i < 3; i++) {
    assert_int_equal(api_count(c, held, NULL), 1000);
  }
  holds = list(c, c->session, 1);
  assert_int_equal(holds[0].storage.state, HF_HOLD_MATERIALISED);
  assert_int_equal(holds[0].storage.rows, 1000);
  assert_true(holds[0].storage.bytes >= 8000);
  assert_int_equal(holds[0].storage.generation, 1);
  assert_true(holds[0].storage.hits >= 2);
  assert_true(holds[0].partitions >= 1);
  assert_true(holds[0].compute_us > 0);
  assert_int_equal(holds[0].saved_us, holds[0].storage.hits * holds[0].compute_us);
  assert_true(holds[0].last_read_us >= holds[0].declared_us);
  hf_holds_free(holds);

  hf_df_unpersist(held, true, NULL);
  assert_null(list(c, c->session, 0));
  hf_df_free(held);
  hf_df_free(query);
}

static void listing_names_tables_and_keeps_their_order(void **state) {
  api_case *c = *state;
  char sql[128];
  for (int i = 0; i < 40; i++) {
    snprintf(sql, sizeof sql, "CACHE LAZY TABLE \"tab\"\"le %d\" AS SELECT %d AS x", i, i);
    api_run(c, sql);
  }
  api_run(c, "CACHE TABLE \"größe\" AS SELECT random() AS x");
  hf_hold *holds = list(c, c->session, 41);
  for (int i = 0; i < 40; i++) {
    snprintf(sql, sizeof sql, "tab\"le %d", i);
    assert_string_equal(holds[i].name, sql);
    assert_int_equal(holds[i].storage.state, HF_HOLD_DECLARED);
  }
  assert_string_equal(holds[40].name, "größe");
  assert_true(holds[40].storage.indeterminate);
  hf_holds_free(holds);
}

static void listing_tells_why_data_were_dropped(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE TABLE t AS SELECT 1 AS x");
  api_run(c, "REFRESH TABLE t");
  hf_hold *holds = list(c, c->session, 1);
  assert_int_equal(holds[0].storage.state, HF_HOLD_DECLARED);
  assert_non_null(holds[0].last_drop);
  assert_int_equal(holds[0].partitions, 0);
  hf_holds_free(holds);
}

/* The columns that do not change between two looks. */
static void listing_is_what_show_cache_shows(void **state) {
  api_case *c = *state;
  api_run(c, "CACHE TABLE one AS SELECT i FROM range(10) t(i)");
  api_run(c, "CACHE LAZY TABLE two OPTIONS ('storageLevel' 'DISK_ONLY') AS SELECT 2 AS x");
  hf_hold *holds = list(c, c->session, 2);
  hf_df *shown = api_sql(c, "SHOW CACHE");
  hf_df *text = NULL;
  assert_int_equal(hf_df_create_view(shown, "shown", true, NULL), HF_OK);
  assert_int_equal(
      hf_session_sql(
          c->session,
          "SELECT name, cache_id, session, level, rows, partitions, generation, hits, indeterminate::VARCHAR FROM shown",
          &text, &c->error),
      HF_OK);
  char wanted[1024];
  snprintf(wanted, sizeof wanted,
           "one|%s|%s|%s|%" PRIu64 "|%" PRIu64 "|1|%" PRIu64
           "|false\ntwo|%s|%s|DISK_ONLY|NULL|NULL|0|0|NULL\n",
           holds[0].storage.cache_id, holds[0].session, holds[0].storage.level, holds[0].storage.rows,
           holds[0].partitions, holds[0].storage.hits, holds[1].storage.cache_id, holds[1].session);
  api_expect_df(c, text, wanted);
  hf_df_free(text);
  hf_df_free(shown);
  hf_holds_free(holds);
}

static void listing_is_of_one_session(void **state) {
  api_case *c = *state;
  hf_session *other = NULL;
  assert_int_equal(hf_session_new(c->session, &other, &c->error), HF_OK);
  api_run(c, "CACHE TABLE t AS SELECT 1 AS x");
  assert_null(list(c, other, 0));
  hf_holds_free(list(c, c->session, 1));
  hf_session_close(other);
}

static void listing_checks_its_arguments(void **state) {
  api_case *c = *state;
  hf_hold *holds = NULL;
  size_t n = 7;
  assert_int_equal(hf_session_holds(NULL, &holds, &n, &c->error), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_session_holds(c->session, NULL, &n, &c->error), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_session_holds(c->session, &holds, NULL, &c->error), HF_E_INVALID_ARGUMENT);
  assert_int_equal(n, 7);
  hf_holds_free(NULL);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(listing_without_holds_is_empty),
      CASE(listing_follows_the_life_of_a_hold),
      CASE(listing_names_tables_and_keeps_their_order),
      CASE(listing_tells_why_data_were_dropped),
      CASE(listing_is_what_show_cache_shows),
      CASE(listing_is_of_one_session),
      CASE(listing_checks_its_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
