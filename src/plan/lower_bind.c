/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binding what was lowered on the planner's engine: inputs become hf_scan with
 * pinned columns. What DuckDB says comes back in the user's words: positions are
 * those of the user's text, and neither names of columns nor messages show what
 * lowering made.
 */
#include "plan/lower_internal.h"

#include "base/fault.h"
#include "base/nearest.h"

#include <string.h>
#include <strings.h>

enum { MOST_NAMED = 500 }; /* columns of which each is compared with each: about 1 ms */

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
      buf_printf(out, "c%zu", c->name[0] == '\0' && FAULT("plan.unnamed") ? columns->n_columns - 1 - i : i);
    }
    if (c->name[0] != '\0') {
      buf_text(out, " AS ");
      buf_sql_name(out, c->name);
    } else {
      buf_printf(out, " AS c%zu", i); /* DuckDB takes no empty alias */
    }
  }
  buf_printf(out, " FROM %s)", call);
}

static hf_status out_of_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to bind a query");
}

/* What the planner is given. */
typedef struct planner_text {
  const char *sql;
  engine_scan *scans;
  size_t *starts; /* of the pieces in sql, and its end */
} planner_text;

/*
 * Tells whether a scan can have the columns by their own names. Then it needs no projection to rename them, which would
 * hide from DuckDB that two scans of one source are the same (docs/plans.md).
 */
static bool names_differ(const schema *columns) {
  if (columns->n_columns == 0 || columns->n_columns > MOST_NAMED) {
    return false;
  }
  for (size_t i = 0; i < columns->n_columns; i++) {
    const char *name = columns->columns[i].name;
    bool is_new = name[0] != '\0';
    for (size_t k = 0; is_new && k < i; k++) {
      is_new = strcasecmp(name, columns->columns[k].name) != 0;
    }
    if (!is_new) {
      return false;
    }
  }
  return true;
}

static hf_status make_scans(const lowered *l, arena *a, planner_text *out, hf_error *error) {
  out->scans = arena_array(a, l->n_inputs + 1, sizeof *out->scans);
  if (out->scans == NULL) {
    return out_of_memory(error);
  }
  for (size_t i = 0; i < l->n_inputs; i++) {
    const lower_input *input = &l->inputs[i];
    out->scans[i] = (engine_scan){.id = arena_printf(a, "%zu", i),
                                  .columns = &input->columns,
                                  .rows = input->rows,
                                  .rows_exact = input->rows_exact,
                                  .by_name = names_differ(&input->columns)};
    if (out->scans[i].id == NULL) {
      return out_of_memory(error);
    }
  }
  return HF_OK;
}

static void append_scan(const lowered *l, uint32_t input, buf *text) {
  buf call = {0};
  buf_printf(&call, "hf_scan('%u')", input);
  if (names_differ(&l->inputs[input].columns)) {
    buf_append(text, call.data, call.length);
  } else {
    lower_scan_sql(&l->inputs[input].columns, buf_cstr(&call), false, text);
  }
  text->failed = text->failed || call.failed;
  buf_reset(&call);
}

static hf_status make_text(const lowered *l, arena *a, planner_text *out, hf_error *error) {
  HF_TRY(make_scans(l, a, out, error));
  out->starts = arena_array(a, l->n_pieces + 1, sizeof *out->starts);
  if (out->starts == NULL) {
    return out_of_memory(error);
  }
  buf text = {0};
  for (size_t i = 0; i < l->n_pieces; i++) {
    out->starts[i] = text.length;
    if (l->pieces[i].text != NULL) {
      buf_text(&text, l->pieces[i].text);
    } else {
      append_scan(l, l->pieces[i].input, &text);
    }
  }
  out->starts[l->n_pieces] = text.length;
  out->sql = text.failed ? NULL : arena_strndup(a, buf_cstr(&text), text.length);
  buf_reset(&text);
  return out->sql == NULL ? out_of_memory(error) : HF_OK;
}

hf_status plan_text_for_planner(const lowered *l, arena *a, const char **sql, engine_scan **scans,
                                hf_error *error) {
  planner_text text = {0};
  HF_TRY(make_text(l, a, &text, error));
  *sql = text.sql;
  *scans = text.scans;
  return HF_OK;
}

/* ---------------------------------------------------------------- what comes back */

/* Where a position of the planner's text lies in the user's text, or -1. */
static int64_t origin_of(const lowered *l, const planner_text *text, int64_t position) {
  for (size_t i = 0; position >= 0 && i < l->n_pieces; i++) {
    bool is_here = (size_t)position >= text->starts[i] && (size_t)position < text->starts[i + 1];
    if (is_here && l->pieces[i].origin >= 0) {
      return l->pieces[i].origin + position - (int64_t)text->starts[i];
    }
  }
  return -1;
}

/* DuckDB names candidates for x, not for t.x. */
static void suggest_column(const lowered *l, arena *a, hf_error *error) {
  const char *start = error->message == NULL ? NULL : strstr(error->message, " named \"");
  const char *end = start == NULL ? NULL : strrchr(start + 8, '"');
  if (error->code != HF_E_COLUMN_NOT_FOUND || end == NULL || end == start + 7) {
    return;
  }
  const char *wanted = arena_strndup(a, start + 8, (size_t)(end - start - 8));
  nearest near = nearest_to(wanted == NULL ? "" : wanted);
  for (size_t i = 0; i < l->n_inputs; i++) {
    for (size_t k = 0; k < l->inputs[i].columns.n_columns; k++) {
      nearest_offer(&near, l->inputs[i].columns.columns[k].name);
    }
  }
  if (near.best != NULL) {
    error_hint(error, "did you mean \"%s\"?", near.best);
  }
}

/* A column of files that is found only where a query names the file itself. */
static void suggest_reader(hf_error *error) {
  static const struct {
    const char *name, *hint;
  } rows[] = {
      {"filename", "ask the reader for it as a column: read_parquet(…, filename = true)"},
      {"file_row_number", "ask the reader for it as a column: read_parquet(…, file_row_number = true)"},
      {"file_index", "number the files by their names: dense_rank() OVER (ORDER BY filename) - 1"},
  };
  for (size_t i = 0; error->code == HF_E_COLUMN_NOT_FOUND && i < sizeof rows / sizeof rows[0]; i++) {
    const char *at = error->message == NULL ? NULL : strcasestr(error->message, rows[i].name);
    size_t length = strlen(rows[i].name);
    if (at != NULL && (at[length] == '\0' || strcmp(at + length, "\"") == 0)) {
      error_hint(error, "%s", rows[i].hint);
    }
  }
}

/* What stands behind an alias is to the user a table, not what lowering made of it. */
static const char *call_it_a_table(const char *message, arena *a) {
  static const char head[] = "values list \"";
  size_t length = sizeof head - 1;
  return message != NULL && strncmp(message, head, length) == 0
             ? arena_printf(a, "table \"%s", message + length)
             : message;
}

/* Puts the user's words into the texts of an error, and its position into the user's text. */
static void error_translate(const lowered *l, const planner_text *text, arena *a, hf_error *error) {
  hf_error mine = {0};
  if (error == NULL || error->message == NULL) { /* without memory for it */
    return;
  }
  const char *message = call_it_a_table(lower_clean_text(l, error->message, a), a);
  const char *hint = error->hint == NULL ? NULL : lower_clean_text(l, error->hint, a);
  error_set(&mine, error->code, "%s", message == NULL ? "" : message);
  if (hint != NULL) {
    error_hint(&mine, "%s", hint);
  }
  error_cause(&mine, error->cause == NULL ? NULL : lower_clean_text(l, error->cause, a));
  mine.position = origin_of(l, text, error->position);
  suggest_column(l, a, &mine);
  suggest_reader(&mine);
  error_move(error, &mine);
}

/* A query that is one input and nothing else: its columns are those of the input, odd names and all. */
static const lower_input *lone_input(const lowered *l) {
  bool is_lone =
      l->n_pieces == 2 && l->pieces[0].text != NULL && l->pieces[0].origin < 0 && l->pieces[1].text == NULL;
  return is_lone && l->columns == NULL ? &l->inputs[l->pieces[1].input] : NULL;
}

/* A built relation has the names that it was checked with; other types than then mean that its files have changed. */
static hf_status names_of_built(const lowered *l, arena *a, schema *columns, hf_error *error) {
  const schema *known = l->columns;
  size_t same = 0, n = known->n_columns;
  while (same < n && same < columns->n_columns &&
         data_type_equal(known->columns[same].type, columns->columns[same].type)) {
    same++;
  }
  if (same < n || columns->n_columns > n) {
    error_set(error, HF_E_BIND, "a column is not what it was when the DataFrame was built: %s",
              same < n ? known->columns[same].name : columns->columns[n].name);
    error_hint(error,
               "a file, or what a view reads, has other columns than before: build the DataFrame again");
    return HF_E_BIND;
  }
  return schema_copy(known, a, columns, error);
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

static hf_status describe(engine *planner, const lowered *l, arena *a, schema *out, hf_error *error) {
  const lower_input *lone = lone_input(l);
  if (lone != NULL) {
    return schema_copy(&lone->columns, a, out, error);
  }
  planner_text text = {0};
  schema columns = {0};
  HF_TRY(make_text(l, a, &text, error));
  engine_set_scans(planner, text.scans, l->n_inputs);
  hf_status status = engine_describe(planner, text.sql, a, &columns, error);
  engine_set_scans(planner, NULL, 0);
  if (status != HF_OK) {
    error_translate(l, &text, a, error);
    return status;
  }
  HF_TRY(l->columns == NULL ? clean_names(l, a, &columns, error) : names_of_built(l, a, &columns, error));
  *out = columns;
  return HF_OK;
}

/* What DuckDB cannot flatten over a WITH chain it may over views in place; what fails both ways fails in the first's words. */
hf_status plan_describe(engine *planner, const lowered *l, arena *a, schema *out, hf_error *error) {
  hf_error found = {0}, ignored = {0};
  if (l->by_names == NULL) {
    return describe(planner, l, a, out, error);
  }
  hf_status status = describe(planner, l->by_names, a, out, &found);
  bool is_final = status == HF_OK || status == HF_E_CANCELLED || status == HF_E_OUT_OF_MEMORY;
  if (!is_final && describe(planner, l, a, out, &ignored) == HF_OK) {
    hf_error_reset(&found);
    return HF_OK;
  }
  hf_error_reset(&ignored);
  error_move(error, &found);
  return status;
}
