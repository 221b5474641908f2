/* SPDX-License-Identifier: Apache-2.0 */
/* Many steps on top of each other: 2,000 are planned in 2 s; what cannot be planned is a limit with a way out. */
#include "support/frame_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEPS = 2000 };

/* Of this process, in seconds: tests run beside others. */
static double processor_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void expect_time(const char *what, double begun, double most) {
  const char *sanitizers = getenv("HOLDFAST_SANITIZE");
  double took = processor_time() - begun;
  print_message("%s: %.2f s of processor time\n", what, took);
  if (sanitizers == NULL || sanitizers[0] == '\0') {
    assert_true(took <= most);
  }
}

/* One more step over `df`, which it frees. */
static hf_df *step(frame_case *f, hf_df *df, const char *name, const char *expression) {
  hf_df *next = MADE(hf_df_with_column, df, name, expression);
  hf_df_free(df);
  return next;
}

static void replaced_column_goes_2000_steps(void **state) {
  frame_case *f = *state;
  double begun = processor_time();
  hf_df *df = MADE(hf_df_select, f->people, HF_LIST("customer", "customer AS x"));
  for (int i = 0; i < STEPS; i++) {
    df = step(f, df, "x", "x + 1");
  }
  hf_df *sum = MADE(hf_df_aggregate, df, (hf_list){0}, HF_LIST("sum(x - customer)::BIGINT AS s"));
  api_expect_df(f->api, sum, "80000\n");
  expect_time("x + 1", begun, 2);
  hf_df_free(sum);
  hf_df_free(df);
}

static void few_columns_go_2000_steps(void **state) {
  frame_case *f = *state;
  static const char *const names[] = {"a", "b", "c", "d", "e"};
  double begun = processor_time();
  hf_df *df =
      MADE(hf_df_select, f->people, HF_LIST("customer", "1 AS a", "2 AS b", "3 AS c", "4 AS d", "5 AS e"));
  for (int i = 0; i < STEPS; i++) {
    char text[64];
    snprintf(text, sizeof text, "(%s + %s) %% 1000", names[i % 5], names[(i + 1) % 5]);
    df = step(f, df, names[i % 5], text);
  }
  int values[] = {1, 2, 3, 4, 5};
  for (int i = 0; i < STEPS; i++) {
    values[i % 5] = (values[i % 5] + values[(i + 1) % 5]) % 1000;
  }
  char wanted[64];
  snprintf(wanted, sizeof wanted, "%d|%d\n", values[0], values[4]);
  hf_df *one = MADE(hf_df_filter, df, "customer = 7");
  hf_df *two = MADE(hf_df_select, one, HF_LIST("a::INTEGER", "e::INTEGER"));
  api_expect_df(f->api, two, wanted);
  expect_time("five columns in turn", begun, 2);
  hf_df_free(two);
  hf_df_free(one);
  hf_df_free(df);
}

static void filters_go_2000_steps(void **state) {
  frame_case *f = *state;
  double begun = processor_time();
  hf_df *df = MADE(hf_df_select, f->sales, HF_LIST("id", "region"));
  for (int i = 0; i < STEPS; i++) {
    char text[64];
    snprintf(text, sizeof text, "id <> %d", i);
    hf_df *next = MADE(hf_df_filter, df, text);
    hf_df_free(df);
    df = next;
  }
  assert_int_equal(api_count(f->api, df, NULL), 3000 - STEPS);
  expect_time("filters", begun, 2);
  hf_df_free(df);
}

/* Windows are not merged. Returns LIMIT, of a step or of planning them all, or HF_OK; *df is the last that was made. */
static hf_status pile_windows(frame_case *f, hf_df **df, int n) {
  for (int i = 0; i < n; i++) {
    hf_df *next = NULL;
    hf_status status =
        hf_df_with_column(*df, "x", "sum(x) OVER (ORDER BY customer) % 7", &next, &f->api->error);
    if (status != HF_OK) {
      return status;
    }
    hf_df_free(*df);
    *df = next;
  }
  char *plan = NULL;
  hf_status status = hf_df_explain(*df, &plan, &f->api->error);
  hf_text_free(plan);
  return status;
}

static void too_many_steps_are_a_limit_with_a_way_out(void **state) {
  frame_case *f = *state;
  hf_df *df = MADE(hf_df_select, f->people, HF_LIST("customer", "1 AS x"));
  assert_int_equal(pile_windows(f, &df, 100), HF_OK);
  hf_df *held = api_cache(f->api, df);
  assert_int_equal(pile_windows(f, &df, 5000), HF_E_LIMIT);
  assert_non_null(strstr(f->api->error.hint, "cache"));
  hf_df_free(df);

  df = MADE(hf_df_filter, held, "true"); /* what is held is one level */
  assert_int_equal(pile_windows(f, &df, 100), HF_OK);
  assert_int_equal(api_count(f->api, df, NULL), 40);
  hf_df_free(df);
  hf_df_free(held);
}

int main(void) {
#define CASE(name) cmocka_unit_test(name)
  const struct CMUnitTest tests[] = {
      CASE(replaced_column_goes_2000_steps),
      CASE(few_columns_go_2000_steps),
      CASE(filters_go_2000_steps),
      CASE(too_many_steps_are_a_limit_with_a_way_out),
  };
  return cmocka_run_group_tests(tests, frame_case_open, frame_case_close);
}
