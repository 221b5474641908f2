/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer of a command as a relation: rows of text, cast to the types of
 * their columns. Failure is sticky, as that of a buf.
 * Thread: one at a time per answer.
 */
#ifndef HF_SESSION_ANSWER_H
#define HF_SESSION_ANSWER_H

#include "session/session_internal.h"

typedef struct answer_column {
  const char *name;
  const char *type; /* as DuckDB spells it */
} answer_column;

typedef struct answer {
  const answer_column *columns; /* borrowed */
  size_t n_columns;
  size_t n_cells;      /* so far */
  buf rows;            /* the VALUES list */
  buf packed;          /* the same, cells behind each other with separators */
  bool has_separators; /* in cells: `packed` cannot be used */
} answer;

/* Starts one; release with answer_reset. */
answer answer_of(const answer_column *columns, size_t n_columns);
void answer_reset(answer *a);
/* The next cell, row by row. NULL is SQL NULL. */
void answer_text(answer *a, const char *text);
void answer_number(answer *a, uint64_t number);
void answer_bool(answer *a, bool value);
/* A length of time; a point in time since 1970 UTC, 0 is NULL. */
void answer_interval_us(answer *a, uint64_t us);
void answer_time_us(answer *a, uint64_t us);

/* The rows as a relation. Errors: OUT_OF_MEMORY and those of relation_from_sql. */
hf_status answer_relation(const answer *a, session *s, relation **out, hf_error *error);

#endif
