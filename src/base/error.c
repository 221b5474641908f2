/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statuses and errors. The rows come from errors.def; this file is the only
 * place that allocates the texts of an hf_error (with the C allocator, since an
 * error outlives every arena).
 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct error_row {
  const char *name;
  hf_error_class error_class;
  const char *sqlstate;
  int grpc;
  int http;
  const char *sentence;
  const char *remedy;
} error_row;

enum {
  ROW_OK = 0,
#define HF_ERROR(name, class, sqlstate, grpc, http, sentence, remedy) ROW_##name,
#include "base/errors.def"
#undef HF_ERROR
  ROW_COUNT
};

#define HF_ERROR(name, class, sqlstate, grpc, http, sentence, remedy) \
  _Static_assert(HF_E_##name == -ROW_##name, "holdfast.h and errors.def differ at " #name);
#include "base/errors.def"
#undef HF_ERROR

static const error_row rows[ROW_COUNT] = {
    [ROW_OK] = {"OK", HF_CLASS_NONE, "00000", 0, 200, "no error", ""},
#define HF_ERROR(name, class, sqlstate, grpc, http, sentence, remedy) \
  [ROW_##name] = {#name, HF_CLASS_##class, sqlstate, grpc, http, sentence, remedy},
#include "base/errors.def"
#undef HF_ERROR
};

static const error_row *row_of(hf_status code) {
  if (code > 0 || code <= -ROW_COUNT) {
    return &rows[ROW_INTERNAL];
  }
  return &rows[-code];
}

static char *text_copy(const char *text) {
  return text == NULL ? NULL : strdup(text);
}

static char *text_format(const char *format, va_list args) HF_PRINTF(1, 0);
static char *text_format(const char *format, va_list args) {
  char *text = NULL;
  if (vasprintf(&text, format, args) < 0) {
    return NULL;
  }
  return text;
}

static hf_status set_text(hf_error *error, hf_status code, char *message) {
  const error_row *row = row_of(code);
  hf_error_reset(error);
  error->code = code;
  error->error_class = row->error_class;
  memcpy(error->sqlstate, row->sqlstate, sizeof error->sqlstate);
  error->position = -1;
  error->message = message;
  error->hint = row->remedy[0] == '\0' ? NULL : strdup(row->remedy);
  return code;
}

hf_status error_set(hf_error *error, hf_status code, const char *format, ...) {
  if (error == NULL) {
    return code;
  }
  va_list args;
  va_start(args, format);
  char *message = text_format(format, args);
  va_end(args);
  return set_text(error, code, message);
}

static hf_status status_of_errno(int error_number, hf_status absent) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return HF_E_DISK_FULL;
    case ENOMEM:
      return HF_E_OUT_OF_MEMORY;
    case ENOENT:
    case ENOTDIR:
      return absent;
    default:
      return HF_E_IO;
  }
}

hf_status error_set_errno(hf_error *error, int error_number, hf_status absent, const char *format, ...) {
  hf_status code = status_of_errno(error_number, absent);
  if (error == NULL) {
    return code;
  }
  va_list args;
  va_start(args, format);
  char *message = text_format(format, args);
  va_end(args);
  set_text(error, code, message);
  char text[128];
  error_cause(error, strerror_r(error_number, text, sizeof text)); /* GNU's: never NULL */
  return code;
}

void error_hint(hf_error *error, const char *format, ...) {
  if (error == NULL) {
    return;
  }
  va_list args;
  va_start(args, format);
  char *hint = text_format(format, args);
  va_end(args);
  free(error->hint);
  error->hint = hint;
}

void error_cause(hf_error *error, const char *cause) {
  if (error == NULL) {
    return;
  }
  char *copy = text_copy(cause);
  free(error->cause);
  error->cause = copy;
}

void error_wrap(hf_error *error, const char *format, ...) {
  if (error == NULL) {
    return;
  }
  va_list args;
  va_start(args, format);
  char *prefix = text_format(format, args);
  va_end(args);
  char *message = NULL;
  if (prefix != NULL &&
      asprintf(&message, "%s: %s", prefix, error->message == NULL ? "" : error->message) >= 0) {
    free(error->message);
    error->message = message;
  }
  free(prefix);
}

void error_move(hf_error *to, hf_error *from) {
  if (from == NULL) {
    return;
  }
  if (to == NULL) {
    hf_error_reset(from);
    return;
  }
  if (to == from) {
    return;
  }
  hf_error_reset(to);
  *to = *from;
  memset(from, 0, sizeof *from);
}

void error_copy(hf_error *to, const hf_error *from) {
  if (to == NULL || to == from) {
    return;
  }
  hf_error_reset(to);
  *to = *from;
  to->message = text_copy(from->message);
  to->hint = text_copy(from->hint);
  to->cause = text_copy(from->cause);
}

hf_error_class error_class_of(hf_status code) {
  return row_of(code)->error_class;
}

const char *error_class_name(hf_error_class error_class) {
  static const char *const names[] = {"none", "user", "retryable", "fetch", "resource", "fatal"};
  return (unsigned)error_class < sizeof names / sizeof names[0] ? names[error_class] : "unknown";
}

void hf_error_reset(hf_error *error) {
  if (error == NULL) {
    return;
  }
  free(error->message);
  free(error->hint);
  free(error->cause);
  memset(error, 0, sizeof *error);
}

const char *hf_status_name(hf_status status) {
  return row_of(status)->name;
}
