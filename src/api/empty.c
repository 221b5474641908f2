/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream that a command without an answer gives: no columns, no rows.
 * Source: https://arrow.apache.org/docs/format/CStreamInterface.html
 * Thread: any; a stream is used by one at a time.
 */
#include "api/dataframe.h"

#include <string.h>

static void release_schema(struct ArrowSchema *fields) {
  fields->release = NULL;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
  (void)stream;
  *out = (struct ArrowSchema){.format = "+s", .name = "", .release = release_schema};
  return 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
  (void)stream;
  memset(out, 0, sizeof *out);
  return 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream) {
  (void)stream;
  return NULL;
}

static void release_stream(struct ArrowArrayStream *stream) {
  stream->release = NULL;
}

void empty_stream(struct ArrowArrayStream *out) {
  *out = (struct ArrowArrayStream){.get_schema = get_schema,
                                   .get_next = get_next,
                                   .get_last_error = get_last_error,
                                   .release = release_stream};
}

void empty_schema(struct ArrowSchema *out) {
  get_schema(NULL, out);
}
