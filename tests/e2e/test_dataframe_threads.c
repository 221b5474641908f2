/* SPDX-License-Identifier: Apache-2.0 */
/* The thread rules of holdfast.h: threads build on, act on and free handles of the same DataFrames and expressions. */
#include "support/frame_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 6, ROUNDS = 8 };

typedef struct worker {
  frame_case *f;
  hf_df *held;        /* shared */
  hf_expr *condition; /* shared */
  unsigned number;
  hf_status failed; /* the first that went wrong */
  char message[200];
  uint64_t counted;
} worker;

static bool note(worker *w, hf_status status, hf_error *error) {
  if (status != HF_OK && w->failed == HF_OK) {
    w->failed = status;
    snprintf(w->message, sizeof w->message, "%s", error->message == NULL ? "" : error->message);
  }
  hf_error_reset(error);
  return status == HF_OK;
}

/* Filter, join and aggregate over shared DataFrames, then count. */
static void build_and_count(worker *w) {
  hf_error error = {0};
  hf_df *kept = NULL, *joined = NULL, *groups = NULL;
  uint64_t rows = 0;
  hf_expr *mine = hf_expr_binary(hf_expr_copy(w->condition), "AND",
                                 hf_expr_binary(hf_expr_column("id"), "<", hf_expr_int64(5000)));
  if (note(w, hf_df_filter(w->f->sales, hf_expr_text(mine), &kept, &error), &error) &&
      note(w, hf_df_join_using(kept, w->held, HF_LIST("region"), HF_JOIN_INNER, &joined, &error), &error) &&
      note(w, hf_df_aggregate(joined, HF_LIST("region"), HF_LIST("sum(total) AS s"), &groups, &error),
           &error) &&
      note(w, hf_df_count(groups, NULL, &rows, &error), &error)) {
    w->counted += rows;
  }
  hf_expr_free(mine);
  hf_df_free(kept);
  hf_df_free(joined);
  hf_df_free(groups);
}

/* Listing, schema, EXPLAIN and views beside the others. */
static void look(worker *w) {
  hf_error error = {0};
  hf_hold *holds = NULL;
  size_t n = 0;
  char *plan = NULL, name[32];
  struct ArrowSchema fields = {0};
  snprintf(name, sizeof name, "view of %u", w->number);
  note(w, hf_session_holds(w->f->api->session, &holds, &n, &error), &error);
  note(w, hf_df_schema(w->held, &fields, &error), &error);
  note(w, hf_df_explain(w->held, &plan, &error), &error);
  note(w, hf_df_create_view(w->held, name, true, &error), &error);
  if (fields.release != NULL) {
    fields.release(&fields);
  }
  hf_text_free(plan);
  hf_holds_free(holds);
}

static void *work(void *context) {
  worker *w = context;
  for (int i = 0; i < ROUNDS; i++) {
    build_and_count(w);
    look(w);
  }
  return NULL;
}

static void threads_share_dataframes_and_expressions(void **state) {
  frame_case *f = *state;
  hf_df *totals = MADE(hf_df_aggregate, f->sales, HF_LIST("region"), HF_LIST("sum(amount) AS total"));
  hf_df *held = api_cache(f->api, totals);
  hf_expr *condition =
      hf_expr_in(hf_expr_column("region"), HF_EXPRS(hf_expr_string("r1"), hf_expr_string("r2")));
  worker workers[THREADS];
  pthread_t threads[THREADS];
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i] = (worker){.f = f, .held = held, .condition = condition, .number = i};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    if (workers[i].failed != HF_OK) {
      fail_msg("%s: %s", hf_status_name(workers[i].failed), workers[i].message);
    }
    assert_int_equal(workers[i].counted, 2 * ROUNDS);
  }
  hf_storage storage = api_storage(f->api, held);
  assert_int_equal(storage.generation, 1); /* computed once for all of them */
  hf_expr_free(condition);
  hf_df_free(held);
  hf_df_free(totals);
}

typedef struct builder {
  hf_df *from;
  hf_status status;
} builder;

static void *build_until_closed(void *context) {
  builder *b = context;
  while (b->status == HF_OK) {
    hf_df *df = NULL;
    b->status = hf_df_filter(b->from, "x > 1", &df, NULL);
    hf_df_free(df);
  }
  return NULL;
}

static void closing_ends_what_is_built_meanwhile(void **state) {
  frame_case *f = *state;
  hf_session *other = NULL;
  hf_df *from = NULL;
  assert_int_equal(hf_session_new(f->api->session, &other, NULL), HF_OK);
  assert_int_equal(hf_session_sql(other, "SELECT 1 AS x", &from, NULL), HF_OK);
  pthread_t threads[2];
  builder builders[2] = {{from, HF_OK}, {from, HF_OK}};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, build_until_closed, &builders[i]), 0);
  }
  hf_session_close(other);
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(builders[i].status, HF_E_SESSION_CLOSED);
  }
  hf_df_free(from);
}

int main(void) {
#define CASE(name) cmocka_unit_test(name)
  const struct CMUnitTest tests[] = {
      CASE(threads_share_dataframes_and_expressions),
      CASE(closing_ends_what_is_built_meanwhile),
  };
  return cmocka_run_group_tests(tests, frame_case_open, frame_case_close);
}
