/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What leaves the command: a buffered descriptor for answers, a writer per
 * format, and what goes to standard error (errors, timing, progress).
 * Thread: the main thread.
 */
#ifndef HF_CLI_OUTPUT_H
#define HF_CLI_OUTPUT_H

#include "arrow/type.h"
#include "base/buf.h"

/* ------------------------------------------------------------- descriptor */

/* A descriptor with a buffer. After a failed write all later ones do nothing. */
typedef struct output {
  int fd;
  bool interruptible; /* a pending signal ends a write that waits for its reader, with EINTR */
  buf pending;
  int error_number; /* errno of the write that failed, 0: none; EPIPE: the reader is gone */
} output;

void output_bytes(output *o, const void *bytes, size_t length);
void output_text(output *o, const char *text);
/* Writes what is pending. Returns false when a write has failed, now or before. */
bool output_flush(output *o);
/* Forgets what is pending and a failure. */
void output_restart(output *o);
void output_reset(output *o);

/* ---------------------------------------------------------------- writers */

typedef struct result_writer result_writer;

/*
 * A format. `head` comes once, then `rows` any number of times, then `finish`; head and rows return false to stop, with
 * `full` set when the writer has all that it shows, else because the output failed. Cells as in text_batch_fn.
 */
typedef struct writer_ops {
  const char *name;
  bool (*head)(result_writer *w);
  bool (*rows)(result_writer *w, const char *const *const *cells, const uint32_t *const *lengths,
               size_t n_rows);
  void (*finish)(result_writer *w, uint64_t result_rows);
} writer_ops;

/* One answer being written. */
struct result_writer {
  const writer_ops *ops;
  output *out;
  arena *memory;  /* of this answer */
  schema columns; /* in `memory`; set before `head` */
  void *state;    /* the format's own */
  bool full;
};

/* A grid for people: numbers to the right, the first TABLE_ROWS_MAX rows, control characters escaped. */
extern const writer_ops writer_table;
/* RFC 4180 with a header line; NULL is an empty field, the empty string is "". */
extern const writer_ops writer_csv;
/* JSON Lines: an object a row. */
extern const writer_ops writer_json;
/* The text of the first column alone (EXPLAIN in a grid would be unreadable). */
extern const writer_ops writer_lines;

#define TABLE_ROWS_MAX 1000

/* Tells whether a column of this type is a number in a grid. */
bool type_is_number(type_kind kind);

/* Appends one value as JSON; `text` is DuckDB's spelling of a value of this type. */
void json_value(buf *out, const data_type *type, const char *text, size_t length);
/* Appends a JSON string literal. Bytes that are not UTF-8 become U+FFFD. */
void json_string(buf *out, const char *text, size_t length);

/* Writes an Arrow IPC stream; *rows counts. Releases nothing of `stream`. Errors: IO, CANCELLED and the stream's own. */
hf_status output_arrow(output *o, struct ArrowArrayStream *stream, uint64_t *rows, hf_error *error);

/* --------------------------------------------------------- standard error */

/* Where a statement stands, for messages. */
typedef struct script_place {
  const char *file; /* NULL: no file */
  size_t line;      /* of the statement's first byte, from 1 */
} script_place;

/*
 * Prints `error: CODE: message`, the hint, the cause, and the line of `sql` with a caret when the position is known
 * (`sql` may be NULL); the origin when `verbose` or when the error is a defect.
 */
void report_error(const hf_error *error, const char *sql, const script_place *place, bool verbose);
/* Prints what an action did: time, rows, held results. */
void report_timing(const hf_profile *profile, uint64_t elapsed_us);
/* Appends 1234567 as 1,234,567. */
void number_grouped(buf *out, uint64_t number);
/* Columns that the UTF-8 text takes on a terminal; control characters count as none. */
size_t display_width(const char *text, size_t length);

/* A progress bar on standard error, drawn from PROGRESS_AFTER_MS on and erased at the end. */
typedef struct progress_bar {
  bool enabled;
  bool drawn;
  uint64_t started_us;
} progress_bar;

void progress_begin(progress_bar *p, bool enabled);
/* An hf_progress_fn; `context` is the progress_bar. */
bool progress_draw(void *context, double fraction, uint64_t rows);
void progress_end(progress_bar *p);

#endif
