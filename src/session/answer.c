/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of text as SELECT … FROM (VALUES …), so that the answer of a command is
 * a DataFrame like any other.
 * Thread: one at a time per answer.
 */
#include "session/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

answer answer_of(const answer_column *columns, size_t n_columns) {
  return (answer){.columns = columns, .n_columns = n_columns};
}

void answer_reset(answer *a) {
  buf_reset(&a->rows);
}

void answer_text(answer *a, const char *text) {
  if (a->n_cells % a->n_columns == 0) {
    buf_text(&a->rows, a->n_cells == 0 ? "(" : "), (");
  } else {
    buf_text(&a->rows, ", ");
  }
  a->n_cells++;
  if (text == NULL) {
    buf_text(&a->rows, "NULL");
  } else {
    buf_sql_string(&a->rows, text);
  }
}

void answer_number(answer *a, uint64_t number) {
  char text[24];
  snprintf(text, sizeof text, "%" PRIu64, number);
  answer_text(a, text);
}

void answer_bool(answer *a, bool value) {
  answer_text(a, value ? "true" : "false");
}

void answer_interval_us(answer *a, uint64_t us) {
  char text[48];
  snprintf(text, sizeof text, "%" PRIu64 " microseconds", us);
  answer_text(a, text);
}

void answer_time_us(answer *a, uint64_t us) {
  time_t seconds = (time_t)(us / 1000000);
  struct tm utc;
  char date[32];
  char text[64];
  if (us == 0 || gmtime_r(&seconds, &utc) == NULL) {
    answer_text(a, NULL);
    return;
  }
  strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &utc);
  snprintf(text, sizeof text, "%s.%06u+00", date, (unsigned)(us % 1000000));
  answer_text(a, text);
}

hf_status answer_relation(const answer *a, session *s, relation **out, hf_error *error) {
  buf sql = {0};
  buf_text(&sql, "SELECT ");
  for (size_t i = 0; i < a->n_columns; i++) {
    buf_printf(&sql, "%sCAST(c%zu AS %s) AS ", i == 0 ? "" : ", ", i, a->columns[i].type);
    buf_sql_name(&sql, a->columns[i].name);
  }
  buf_text(&sql, " FROM (VALUES ");
  if (a->n_cells > 0) {
    buf_append(&sql, a->rows.data, a->rows.length);
  }
  for (size_t i = 0; a->n_cells == 0 && i < a->n_columns; i++) {
    buf_text(&sql, i == 0 ? "(NULL" : ", NULL");
  }
  buf_text(&sql, ")) AS answer(");
  for (size_t i = 0; i < a->n_columns; i++) {
    buf_printf(&sql, "%sc%zu", i == 0 ? "" : ", ", i);
  }
  buf_text(&sql, a->n_cells == 0 ? ") WHERE false" : ")");
  hf_status status = sql.failed || a->rows.failed
                         ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the answer of a command")
                         : query_relation(s, buf_cstr(&sql), out, error);
  buf_reset(&sql);
  return status;
}
