/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrow schemas out of a short text, random arrays of any layout, and values as
 * text, for tests of the code that moves arrays. Independent of src/arrow: reads
 * offsets, bitmaps, dictionaries, views and unions by the standard.
 *
 * A schema's text is its format, then its children in "(a;b)" or its dictionary's
 * values in "<a>": "+s(i;u;+l(d:10,2);C<u>;+us:0,1(i;u))". Fields are called f0, f1 …
 */
#ifndef HF_TESTS_MADE_ARROW_H
#define HF_TESTS_MADE_ARROW_H

#include "base/buf.h"

/* Asserts that the text is well formed. Released by its release callback. */
void made_schema(const char *text, struct ArrowSchema *out);

typedef struct made_options {
  uint64_t seed;
  int64_t rows;
  unsigned null_percent;
  bool with_offsets;       /* arrays start behind rows of no meaning */
  bool unknown_null_count; /* -1, as Arrow allows */
} made_options;

/* Makes a random array; the root has no NULLs. Released by its release callback. */
void made_array(const struct ArrowSchema *schema, const made_options *options, struct ArrowArray *out);

/* Appends a row's value: the same for the same value in every face. */
void made_value_text(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t row, buf *out);
/* Appends all rows of a struct array of columns, a line each. */
void made_rows_text(const struct ArrowSchema *schema, const struct ArrowArray *array, buf *out);

/* A stream that gives `n` arrays of a schema, which it takes, then the end or, with fail_at_end, an error. */
void made_stream(struct ArrowSchema *schema, struct ArrowArray *arrays, size_t n, bool fail_at_end,
                 struct ArrowArrayStream *out);

#endif
