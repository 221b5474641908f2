/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compute an expensive DataFrame once, hold it, reuse it: the first action fills
 * the hold, the second reads it back, a query on top reads it too.
 */
#include <holdfast/holdfast.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static hf_error error;

/* Ends the program with the details of a failure. */
static void check(hf_status status, const char *what) {
  if (status != HF_OK) {
    fprintf(stderr, "%s: %s (%s)\n", what, error.message, hf_status_name(status));
    exit(1);
  }
}

static void expect(bool truth, const char *what) {
  if (!truth) {
    fprintf(stderr, "not as expected: %s\n", what);
    exit(1);
  }
}

static uint64_t count(hf_df *df, hf_profile *profile) {
  hf_action_options options = {.profile = profile};
  uint64_t rows = 0;
  check(hf_df_count(df, &options, &rows, &error), "count");
  printf("  %" PRIu64 " rows in %" PRIu64 " us: %" PRIu64 " computed, %" PRIu64 " read back\n", rows,
         profile->elapsed_us, profile->held_fills, profile->held_hits);
  return rows;
}

int main(void) {
  hf_session *session = NULL;
  hf_df *query = NULL, *held = NULL, *top = NULL;
  hf_profile cold, warm, above;
  hf_storage storage;

  check(hf_session_open("local", NULL, 0, &session, &error), "open");
  check(hf_session_sql(session,
                       "SELECT i % 1000 AS key, count(*) AS n, sum(sqrt(i)) AS total "
                       "FROM range(1000000) t(i) GROUP BY key",
                       &query, &error),
        "sql");
  check(hf_df_cache(query, &held, &error), "cache");

  puts("cold:");
  expect(count(held, &cold) == 1000 && cold.held_fills == 1, "the first action fills the hold");
  puts("warm:");
  expect(count(held, &warm) == 1000 && warm.held_hits == 1 && warm.held_fills == 0,
         "the second reads it back");

  check(hf_df_create_view(held, "totals", false, &error), "create view");
  check(hf_session_sql(session, "SELECT * FROM totals WHERE key < 10", &top, &error), "sql on top");
  puts("a query on top:");
  expect(count(top, &above) == 10 && above.held_hits == 1, "a query on top reads it back");

  check(hf_df_storage(held, &storage, &error), "storage");
  printf("held: %" PRIu64 " rows, %" PRIu64 " bytes, %s, %" PRIu64 " hits\n", storage.rows, storage.bytes,
         storage.level, storage.hits);
  expect(storage.state == HF_HOLD_MATERIALISED && storage.rows == 1000, "the result is held");

  check(hf_df_unpersist(held, true, &error), "unpersist");
  check(hf_df_storage(held, &storage, &error), "storage");
  expect(storage.state == HF_HOLD_RELEASED, "unpersist lets it go");
  puts("let go:");
  expect(count(held, &cold) == 1000 && cold.held_fills == 0, "later uses compute without filling again");

  hf_df_free(top);
  hf_df_free(held);
  hf_df_free(query);
  hf_session_close(session);
  return 0;
}
