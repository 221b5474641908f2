/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches a query: the callback gets the fraction done and the rows read, and may
 * end the query by returning false.
 */
#include <holdfast/holdfast.h>

#include <inttypes.h>
#include <stdio.h>

typedef struct seen {
  unsigned calls;
  unsigned calls_allowed;
} seen;

static bool watch(void *context, double fraction, uint64_t rows) {
  seen *s = context;
  s->calls++;
  if (fraction < 0) {
    printf("  running, %" PRIu64 " rows read\n", rows);
  } else {
    printf("  %3.0f %%, %" PRIu64 " rows read\n", fraction * 100, rows);
  }
  return s->calls < s->calls_allowed;
}

int main(void) {
  hf_session *session = NULL;
  hf_df *endless = NULL;
  hf_error error = {0};
  struct ArrowArrayStream stream;
  seen s = {.calls_allowed = 3};
  hf_action_options options = {.progress = watch, .progress_context = &s};

  if (hf_session_open("local", NULL, 0, &session, &error) != HF_OK ||
      hf_session_sql(session, "SELECT sum(sqrt(a.i * b.i)) FROM range(10000000) a(i), range(10000000) b(i)",
                     &endless, &error) != HF_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  puts("a query that would take days, ended at the third call:");
  hf_status status = hf_df_collect(endless, &options, &stream, &error);
  printf("%s after %u calls\n", hf_status_name(status), s.calls);

  hf_error_reset(&error);
  hf_df_free(endless);
  hf_session_close(session);
  return status == HF_E_CANCELLED && s.calls == 3 ? 0 : 1;
}
