/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binding what was lowered on the planner's engine: inputs become hf_scan with
 * pinned columns. What DuckDB says comes back in the user's words: positions are
 * those of the user's text, and neither names of columns nor messages show what
 * lowering made.
 */
#include "plan/lower_internal.h"

#include <string.h>

void lower_scan_sql(const schema *columns, const char *call, bool cast_enums, buf *out) {
  buf_text(out, columns->n_columns == 0 ? "(SELECT *" : "(SELECT ");
  for (size_t i = 0; i < columns->n_columns; i++) {
    const column *c = &columns->columns[i];
    buf_text(out, i == 0 ? "" : ", ");
    if (cast_enums && data_type_contains(c->type, TYPE_ENUM)) {
      buf_printf(out, "CAST(c%zu AS ", i);
      data_type_to_sql(c->type, out);
      buf_char(out, ')');
    } else {
      buf_printf(out, "c%zu", i);
    }
    if (c->name[0] != '\0') {
      buf_text(out, " AS ");
      buf_sql_name(out, c->name);
    }
  }
  buf_printf(out, " FROM %s)", call);
}

static hf_status out_of_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to bind a query");
}

hf_status plan_text_for_planner(const lowered *l, arena *a, const char **sql, engine_scan **scans,
                                hf_error *error) {
  engine_scan *list = arena_array(a, l->n_inputs + 1, sizeof *list);
  if (list == NULL) {
    return out_of_memory(error);
  }
  for (size_t i = 0; i < l->n_inputs; i++) {
    const lower_input *input = &l->inputs[i];
    list[i] = (engine_scan){arena_printf(a, "%zu", i), &input->columns, input->rows, input->rows_exact};
    if (list[i].id == NULL) {
      return out_of_memory(error);
    }
  }
  buf text = {0};
  for (size_t i = 0; i < l->n_pieces; i++) {
    const sql_piece *piece = &l->pieces[i];
    if (piece->text != NULL) {
      buf_text(&text, piece->text);
    } else {
      const char *call = arena_printf(a, "hf_scan('%s')", list[piece->input].id);
      text.failed = text.failed || call == NULL;
      lower_scan_sql(&l->inputs[piece->input].columns, call == NULL ? "" : call, false, &text);
    }
  }
  *sql = text.failed ? NULL : arena_strndup(a, buf_cstr(&text), text.length);
  buf_reset(&text);
  *scans = list;
  return *sql == NULL ? out_of_memory(error) : HF_OK;
}

/* ---------------------------------------------------------------- what comes back */

/* Puts the user's words into the texts of an error, and its position into the user's text. */
static void error_translate(const lowered *l, arena *a, hf_error *error) {
  hf_error mine = {0};
  if (error == NULL || error->code == HF_OK || error->message == NULL) {
    return;
  }
  const char *message = lower_clean_text(l, error->message, a);
  const char *hint = error->hint == NULL ? NULL : lower_clean_text(l, error->hint, a);
  const char *cause = error->cause == NULL ? NULL : lower_clean_text(l, error->cause, a);
  error_set(&mine, error->code, "%s", message == NULL ? "" : message);
  if (hint != NULL) {
    error_hint(&mine, "%s", hint);
  }
  error_cause(&mine, cause);
  mine.position = -1;
  int64_t start = 0;
  for (size_t i = 0; i < l->n_pieces && l->pieces[i].text != NULL; i++) {
    const sql_piece *piece = &l->pieces[i];
    int64_t length = (int64_t)strlen(piece->text);
    if (error->position >= start && error->position < start + length && piece->origin >= 0) {
      mine.position = piece->origin + error->position - start;
    }
    start += length;
  }
  error_move(error, &mine);
}

/* A query that is one input and nothing else: its columns are those of the input, odd names and all. */
static const lower_input *lone_input(const lowered *l) {
  bool is_lone =
      l->n_pieces == 2 && l->pieces[0].text != NULL && l->pieces[0].origin < 0 && l->pieces[1].text == NULL;
  return is_lone ? &l->inputs[l->pieces[1].input] : NULL;
}

static hf_status clean_names(const lowered *l, arena *a, schema *columns, hf_error *error) {
  column *cleaned = arena_array(a, columns->n_columns + 1, sizeof *cleaned);
  if (cleaned == NULL) {
    return out_of_memory(error);
  }
  for (size_t i = 0; i < columns->n_columns; i++) {
    cleaned[i] = (column){lower_clean_text(l, columns->columns[i].name, a), columns->columns[i].type};
    if (cleaned[i].name == NULL) {
      return out_of_memory(error);
    }
  }
  columns->columns = cleaned;
  return HF_OK;
}

hf_status plan_describe(engine *planner, const lowered *l, arena *a, schema *out, hf_error *error) {
  const lower_input *lone = lone_input(l);
  if (lone != NULL) {
    return schema_copy(&lone->columns, a, out, error);
  }
  const char *sql = NULL;
  engine_scan *scans = NULL;
  schema columns = {0};
  HF_TRY(plan_text_for_planner(l, a, &sql, &scans, error));
  engine_set_scans(planner, scans, l->n_inputs);
  hf_status status = engine_describe(planner, sql, a, &columns, error);
  engine_set_scans(planner, NULL, 0);
  if (status != HF_OK) {
    error_translate(l, a, error);
    return status;
  }
  HF_TRY(clean_names(l, a, &columns, error));
  *out = columns;
  return HF_OK;
}
