/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report built step by step: a file is read, filtered by what a user typed,
 * joined, grouped and ranked; the expensive part is held, so that two reports on
 * top of it compute it once; one of them is written to a Parquet file.
 */
#include <holdfast/holdfast.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static hf_error error;

/* Ends the program with the details of a failure. */
static void check(hf_status status, const char *what) {
  if (status != HF_OK) {
    fprintf(stderr, "%s: %s (%s)\n", what, error.message, hf_status_name(status));
    if (error.hint != NULL) {
      fprintf(stderr, "hint: %s\n", error.hint);
    }
    exit(1);
  }
}

static void expect(bool truth, const char *what) {
  if (!truth) {
    fprintf(stderr, "not as expected: %s\n", what);
    exit(1);
  }
}

/* Prints rows of (VARCHAR, DOUBLE, BIGINT) and counts them. */
static int64_t print(hf_df *df) {
  struct ArrowArrayStream stream;
  struct ArrowArray batch;
  int64_t rows = 0;
  check(hf_df_collect(df, NULL, &stream, &error), "collect");
  for (;;) {
    expect(stream.get_next(&stream, &batch) == 0, "the next batch");
    if (batch.release == NULL) {
      break;
    }
    const struct ArrowArray *name = batch.children[0];
    const int32_t *ends = (const int32_t *)name->buffers[1] + name->offset;
    const double *total = (const double *)batch.children[1]->buffers[1] + batch.children[1]->offset;
    const int64_t *place = (const int64_t *)batch.children[2]->buffers[1] + batch.children[2]->offset;
    for (int64_t i = 0; i < batch.length; i++) {
      printf("  %" PRId64 ". %-10.*s %10.2f\n", place[i], (int)(ends[i + 1] - ends[i]),
             (const char *)name->buffers[2] + ends[i], total[i]);
    }
    rows += batch.length;
    batch.release(&batch);
  }
  stream.release(&stream);
  return rows;
}

/* Orders and customers, as files would be: hf_session_read(session, "parquet", …) gives the same. */
static void read_tables(hf_session *session, hf_df **orders, hf_df **customers) {
  check(hf_session_sql(session,
                       "SELECT i AS id, i * 7 % 20 AS customer, (i * 31 % 1000) / 10 AS amount, "
                       "CASE i % 3 WHEN 0 THEN 'shop' WHEN 1 THEN 'web''s' ELSE 'phone' END AS \"sold by\" "
                       "FROM range(100000) t(i)",
                       orders, &error),
        "orders");
  check(hf_session_sql(session, "SELECT i AS customer, 'No. ' || i AS name FROM range(20) t(i)", customers,
                       &error),
        "customers");
}

/* The orders of one channel. `channel` may hold anything: it becomes a value, never SQL. */
static hf_df *of_channel(hf_df *orders, const char *channel) {
  hf_df *kept = NULL;
  hf_expr *condition = hf_expr_binary(hf_expr_column("sold by"), "=", hf_expr_string(channel));
  check(hf_df_filter(orders, hf_expr_text(condition), &kept, &error), "filter");
  hf_expr_free(condition);
  return kept;
}

/* Totals of each customer, with the customer's name. */
static hf_df *totals_of(hf_df *orders, hf_df *customers) {
  hf_df *sums = NULL, *named = NULL;
  check(hf_df_aggregate(orders, HF_LIST("customer"), HF_LIST("sum(amount) AS total", "count(*) AS n"), &sums,
                        &error),
        "aggregate");
  check(hf_df_join_using(sums, customers, HF_LIST("customer"), HF_JOIN_INNER, &named, &error), "join");
  hf_df_free(sums);
  return named;
}

/* The best by total: name, total, place. */
static hf_df *best(hf_df *totals, uint64_t most) {
  hf_df *selected = NULL, *sorted = NULL, *few = NULL;
  const hf_window by_total = {.order_by = HF_LIST("total DESC", "name")};
  hf_expr *place = hf_expr_alias(hf_expr_over(hf_expr_call("row_number", NULL, 0), &by_total), "place");
  check(
      hf_df_select(totals, HF_LIST("name", "total::DOUBLE AS total", hf_expr_text(place)), &selected, &error),
      "select");
  check(hf_df_order_by(selected, HF_LIST("place"), &sorted, &error), "order by");
  check(hf_df_limit(sorted, most, 0, &few, &error), "limit");
  hf_expr_free(place);
  hf_df_free(selected);
  hf_df_free(sorted);
  return few;
}

int main(void) {
  hf_session *session = NULL;
  hf_df *orders = NULL, *customers = NULL, *held = NULL, *written = NULL, *wrong = NULL;
  char path[64];
  snprintf(path, sizeof path, "/tmp/best-customers-%ld.parquet", (long)getpid());

  check(hf_session_open("local", NULL, 0, &session, &error), "open");
  read_tables(session, &orders, &customers);

  hf_df *sold = of_channel(orders, "web's");
  hf_df *totals = totals_of(sold, customers);
  check(hf_df_cache(totals, &held, &error), "cache");

  puts("the best three:");
  hf_df *three = best(held, 3);
  expect(print(three) == 3, "three rows");

  puts("all, into a file:");
  hf_df *all = best(held, HF_NO_LIMIT);
  hf_profile profile;
  const hf_action_options action = {.profile = &profile};
  const hf_write_options options = {.overwrite = true};
  check(hf_df_write_parquet(all, path, &options, &action, &error), "write");
  printf("  %" PRIu64 " rows; the totals were read back: %" PRIu64 " hit, %" PRIu64 " computed\n",
         profile.result_rows, profile.held_hits, profile.held_fills);
  expect(profile.held_hits == 1 && profile.held_fills == 0, "the second report reads the totals back");

  const char *paths[] = {path};
  uint64_t rows = 0;
  check(hf_session_read(session, "parquet", paths, 1, NULL, 0, &written, &error), "read");
  check(hf_df_count(written, NULL, &rows, &error), "count");
  expect(rows == profile.result_rows, "the file holds the rows");

  puts("a step that cannot be:");
  expect(hf_df_filter(held, "totl > 5", &wrong, &error) == HF_E_COLUMN_NOT_FOUND, "an unknown column");
  printf("  %s\n  hint: %s\n", error.message, error.hint);

  hf_error_reset(&error);
  hf_df_free(written);
  hf_df_free(all);
  hf_df_free(three);
  hf_df_free(held);
  hf_df_free(totals);
  hf_df_free(sold);
  hf_df_free(customers);
  hf_df_free(orders);
  hf_session_close(session);
  unlink(path);
  return 0;
}
