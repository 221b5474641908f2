/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of text as SELECT … FROM (VALUES …), so that the answer of a command is
 * a DataFrame like any other. Many rows are one text that the query splits: a
 * VALUES list costs DuckDB 0.3 ms a row to parse, bind and run.
 * Thread: one at a time per answer.
 */
#include "session/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ROWS_AS_VALUES = 100 };

/* Control characters that stand between cells, between rows, and for NULL. */
static const char CELL_END = 0x1f, ROW_END = 0x1e, NULL_CELL = 0x1d;

answer answer_of(const answer_column *columns, size_t n_columns) {
  return (answer){.columns = columns, .n_columns = n_columns};
}

void answer_reset(answer *a) {
  buf_reset(&a->rows);
  buf_reset(&a->packed);
}

static void pack(answer *a, const char *text) {
  static const char separators[] = {0x1d, 0x1e, 0x1f, 0};
  if (a->n_cells > 0) {
    buf_char(&a->packed, a->n_cells % a->n_columns == 0 ? ROW_END : CELL_END);
  }
  if (text == NULL) {
    buf_char(&a->packed, NULL_CELL);
  } else {
    a->has_separators = a->has_separators || strpbrk(text, separators) != NULL;
    buf_text(&a->packed, text);
  }
}

void answer_text(answer *a, const char *text) {
  pack(a, text);
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

static void put_columns(const answer *a, bool is_packed, buf *sql) {
  buf_text(sql, "SELECT ");
  for (size_t i = 0; i < a->n_columns; i++) {
    buf_text(sql, i == 0 ? "CAST(" : ", CAST(");
    buf_printf(sql, is_packed ? "nullif(r[%zu], chr(%d))" : "c%zu", is_packed ? i + 1 : i, NULL_CELL);
    buf_printf(sql, " AS %s) AS ", a->columns[i].type);
    buf_sql_name(sql, a->columns[i].name);
  }
}

static void put_values(const answer *a, buf *sql) {
  put_columns(a, false, sql);
  buf_text(sql, " FROM (VALUES ");
  if (a->n_cells > 0) {
    buf_append(sql, a->rows.data, a->rows.length);
  }
  for (size_t i = 0; a->n_cells == 0 && i < a->n_columns; i++) {
    buf_text(sql, i == 0 ? "(NULL" : ", NULL");
  }
  buf_text(sql, ")) AS answer(");
  for (size_t i = 0; i < a->n_columns; i++) {
    buf_printf(sql, "%sc%zu", i == 0 ? "" : ", ", i);
  }
  buf_text(sql, a->n_cells == 0 ? ") WHERE false" : ")");
}

static void put_packed(const answer *a, buf *sql) {
  put_columns(a, true, sql);
  buf_printf(sql, " FROM (SELECT string_split(l, chr(%d)) AS r FROM (SELECT unnest(string_split(", CELL_END);
  buf_sql_string(sql, buf_cstr(&a->packed));
  buf_printf(sql, ", chr(%d))) AS l))", ROW_END);
}

hf_status answer_relation(const answer *a, session *s, relation **out, hf_error *error) {
  buf sql = {0};
  if (a->n_cells > ROWS_AS_VALUES * a->n_columns && !a->has_separators) {
    put_packed(a, &sql);
  } else {
    put_values(a, &sql);
  }
  hf_status status = sql.failed || a->rows.failed || a->packed.failed
                         ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the answer of a command")
                         : query_relation(s, buf_cstr(&sql), out, error);
  buf_reset(&sql);
  return status;
}
