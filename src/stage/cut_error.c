/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of a stage's tasks in the words of the query. DuckDB ends the message of
 * a cast that failed with "when casting from source column c0"; which column of
 * the query that is, the casts of the stage tell.
 * Thread: any.
 */
#include "stage/cut.h"

#include "base/buf.h"
#include "sql/write.h"

#include <string.h>

static const char clause[] = " when casting from source column ";

/* The name of the column that the text calls c<n>; NULL: none, or not the same in all its casts. */
static const char *name_of(const cut_stage *stage, const char *spelled, size_t length) {
  const char *found = NULL;
  for (size_t i = 0; i < stage->n_casts; i++) {
    const plan_cast *cast = &stage->casts[i];
    if (strlen(cast->column) != length || strncmp(cast->column, spelled, length) != 0) {
      continue;
    }
    if (cast->name == NULL || (found != NULL && strcmp(found, cast->name) != 0)) {
      return NULL;
    }
    found = cast->name;
  }
  return found;
}

/* Appends the text with its clause changed; false: it has none. */
static bool clean_text(const cut_stage *stage, const char *text, buf *out) {
  const char *at = text == NULL ? NULL : strstr(text, clause);
  if (at == NULL) {
    return false;
  }
  const char *spelled = at + strlen(clause);
  size_t length = spelled[0] == 'c' ? 1 + strspn(spelled + 1, "0123456789") : 0;
  if (length < 2) {
    return false;
  }
  const char *name = name_of(stage, spelled, length);
  buf_append(out, text, (size_t)(at - text));
  if (name != NULL) {
    buf_text(out, clause);
    buf_text(out, name);
  }
  buf_text(out, spelled + length);
  return !out->failed;
}

void cut_clean_error(const cut_stage *stage, hf_error *error) {
  buf message = {0}, cause = {0};
  hf_error cleaned = {0};
  if (clean_text(stage, error->message, &message)) {
    bool has_cause = clean_text(stage, error->cause, &cause);
    error_set(&cleaned, error->code, "%s", buf_cstr(&message));
    error_hint(&cleaned, "%s", error->hint == NULL ? "" : error->hint);
    error_cause(&cleaned, has_cause ? buf_cstr(&cause) : error->cause);
    cleaned.job = error->job;
    cleaned.stage = error->stage;
    cleaned.task = error->task;
    cleaned.attempt = error->attempt;
    cleaned.position = error->position;
    memcpy(cleaned.executor, error->executor, sizeof cleaned.executor);
    error_move(error, &cleaned);
  }
  buf_reset(&message);
  buf_reset(&cause);
}
