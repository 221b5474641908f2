/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads act on one DataFrame that is not computed yet: one computes it, the
 * other waits for it, and both see the same rows, even those of random().
 */
#include <holdfast/holdfast.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

typedef struct reader {
  hf_df *df;
  hf_status status;
  hf_error error;
  hf_profile profile;
  double sum;
} reader;

/* Adds up the one DOUBLE column. */
static hf_status read_sum(reader *r) {
  struct ArrowArrayStream stream;
  hf_action_options options = {.profile = &r->profile};
  hf_status status = hf_df_collect(r->df, &options, &stream, &r->error);
  if (status != HF_OK) {
    return status;
  }
  for (;;) {
    struct ArrowArray batch;
    if (stream.get_next(&stream, &batch) != 0) {
      status = HF_E_IO;
      break;
    }
    if (batch.release == NULL) {
      break;
    }
    const struct ArrowArray *column = batch.children[0];
    for (int64_t i = 0; i < batch.length; i++) {
      r->sum += ((const double *)column->buffers[1])[column->offset + i];
    }
    batch.release(&batch);
  }
  stream.release(&stream);
  return status;
}

static void *run(void *context) {
  reader *r = context;
  r->status = read_sum(r);
  return NULL;
}

int main(void) {
  hf_session *session = NULL;
  hf_df *query = NULL, *held = NULL;
  hf_error error = {0};
  reader readers[2] = {{0}, {0}};
  pthread_t threads[2];

  if (hf_session_open("local", NULL, 0, &session, &error) != HF_OK ||
      hf_session_sql(session, "SELECT random() AS r FROM range(200000)", &query, &error) != HF_OK ||
      hf_df_cache(query, &held, &error) != HF_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  for (int i = 0; i < 2; i++) {
    readers[i].df = held;
    if (pthread_create(&threads[i], NULL, run, &readers[i]) != 0) {
      return 1;
    }
  }
  uint64_t fills = 0;
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
    if (readers[i].status != HF_OK) {
      fprintf(stderr, "thread %d: %s\n", i + 1, readers[i].error.message);
      return 1;
    }
    fills += readers[i].profile.held_fills;
    printf("thread %d: sum %.6f, computed %" PRIu64 ", waited %" PRIu64 ", read back %" PRIu64 "\n", i + 1,
           readers[i].sum, readers[i].profile.held_fills, readers[i].profile.held_waits,
           readers[i].profile.held_hits);
  }
  hf_df_free(held);
  hf_df_free(query);
  hf_session_close(session);
  return fills == 1 && readers[0].sum == readers[1].sum ? 0 : 1;
}
