/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancels a query from another thread: the action returns HF_E_CANCELLED, and the
 * session goes on.
 */
#include <holdfast/holdfast.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct running {
  hf_cancel *cancel;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool started; /* the query reports progress */
} running;

/* On the thread of the action, about ten times a second: tells the other thread that the query runs. */
static bool tell_started(void *context, double fraction, uint64_t rows) {
  running *r = context;
  (void)fraction;
  (void)rows;
  pthread_mutex_lock(&r->lock);
  r->started = true;
  pthread_cond_signal(&r->changed);
  pthread_mutex_unlock(&r->lock);
  return true;
}

static void *cancel_when_started(void *context) {
  running *r = context;
  pthread_mutex_lock(&r->lock);
  while (!r->started) {
    pthread_cond_wait(&r->changed, &r->lock);
  }
  pthread_mutex_unlock(&r->lock);
  hf_cancel_signal(r->cancel);
  return NULL;
}

int main(void) {
  hf_session *session = NULL;
  hf_df *endless = NULL, *small = NULL;
  hf_error error = {0};
  struct ArrowArrayStream stream;
  uint64_t rows = 0;
  running r = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  pthread_t other;

  r.cancel = hf_cancel_new();
  if (r.cancel == NULL || hf_session_open("local", NULL, 0, &session, &error) != HF_OK ||
      hf_session_sql(session, "SELECT sum(sqrt(a.i * b.i)) FROM range(10000000) a(i), range(10000000) b(i)",
                     &endless, &error) != HF_OK ||
      pthread_create(&other, NULL, cancel_when_started, &r) != 0) {
    fprintf(stderr, "%s\n", error.message == NULL ? "cannot start" : error.message);
    return 1;
  }
  hf_action_options options = {.cancel = r.cancel, .progress = tell_started, .progress_context = &r};
  hf_status status = hf_df_collect(endless, &options, &stream, &error);
  tell_started(&r, 1, 0); /* the other thread must end, whatever happened */
  pthread_join(other, NULL);
  printf("the long query: %s (%s)\n", hf_status_name(status), error.message == NULL ? "" : error.message);
  hf_error_reset(&error);

  hf_status after = hf_session_sql(session, "SELECT * FROM range(5)", &small, &error);
  after = after == HF_OK ? hf_df_count(small, NULL, &rows, &error) : after;
  printf("the next query: %s, %" PRIu64 " rows\n", hf_status_name(after), rows);

  hf_cancel_free(r.cancel);
  hf_error_reset(&error);
  hf_df_free(small);
  hf_df_free(endless);
  hf_session_close(session);
  return status == HF_E_CANCELLED && after == HF_OK && rows == 5 ? 0 : 1;
}
