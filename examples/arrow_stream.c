/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of your own as a DataFrame: builds an Arrow stream of one column by hand,
 * gives it to a session, aggregates it and reads the answer as Arrow.
 */
#include <holdfast/holdfast.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 4, ROWS = 1000 };

static hf_error error;

static void check(hf_status status, const char *what) {
  if (status != HF_OK) {
    fprintf(stderr, "%s: %s (%s)\n", what, error.message, hf_status_name(status));
    exit(1);
  }
}

/* ------------------------------------------------------------------ a stream
 * Four batches of the numbers 0 … 3999 in a column "x". Everything is static, so
 * that `release` only marks a structure as released. */

static int64_t numbers[BATCHES * ROWS];
static int next_batch;

static void schema_release(struct ArrowSchema *schema) {
  schema->release = NULL;
}

static void array_release(struct ArrowArray *array) {
  array->release = NULL;
}

static void stream_release(struct ArrowArrayStream *stream) {
  stream->release = NULL;
}

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
  static struct ArrowSchema column;
  static struct ArrowSchema *columns[] = {&column};
  (void)stream;
  column = (struct ArrowSchema){
      .format = "l", .name = "x", .flags = ARROW_FLAG_NULLABLE, .release = schema_release};
  *out = (struct ArrowSchema){
      .format = "+s", .name = "", .n_children = 1, .children = columns, .release = schema_release};
  return 0;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
  static struct ArrowArray column;
  static struct ArrowArray *columns[] = {&column};
  static const void *column_buffers[2], *struct_buffers[1];
  (void)stream;
  memset(out, 0, sizeof *out); /* at the end: released */
  if (next_batch == BATCHES) {
    return 0;
  }
  column_buffers[1] = &numbers[next_batch * ROWS];
  next_batch++;
  column = (struct ArrowArray){
      .length = ROWS, .n_buffers = 2, .buffers = column_buffers, .release = array_release};
  *out = (struct ArrowArray){.length = ROWS,
                             .n_buffers = 1,
                             .buffers = struct_buffers,
                             .n_children = 1,
                             .children = columns,
                             .release = array_release};
  return 0;
}

static const char *stream_error(struct ArrowArrayStream *stream) {
  (void)stream;
  return NULL;
}

/* ------------------------------------------------------------------ the rest */

int main(void) {
  hf_session *session = NULL;
  hf_df *rows = NULL, *query = NULL;
  struct ArrowArrayStream stream = {.get_schema = stream_schema,
                                    .get_next = stream_next,
                                    .get_last_error = stream_error,
                                    .release = stream_release};
  for (int i = 0; i < BATCHES * ROWS; i++) {
    numbers[i] = i;
  }
  check(hf_session_open("local", NULL, 0, &session, &error), "open");
  check(hf_session_from_stream(session, &stream, &rows, &error), "from stream");
  check(hf_df_create_view(rows, "numbers", false, &error), "create view");
  check(hf_session_sql(session, "SELECT sum(x)::BIGINT AS total FROM numbers", &query, &error), "sql");

  struct ArrowArrayStream answer;
  struct ArrowArray batch;
  check(hf_df_collect(query, NULL, &answer, &error), "collect");
  if (answer.get_next(&answer, &batch) != 0 || batch.release == NULL || batch.length != 1) {
    fprintf(stderr, "the answer has not one row\n");
    return 1;
  }
  const struct ArrowArray *column = batch.children[0];
  int64_t total = ((const int64_t *)column->buffers[1])[column->offset];
  batch.release(&batch);
  answer.release(&answer);

  printf("sum of 0 … %d: %" PRId64 "\n", BATCHES * ROWS - 1, total);
  hf_df_free(query);
  hf_df_free(rows);
  hf_session_close(session);
  return total == 7998000 ? 0 : 1;
}
