/* SPDX-License-Identifier: Apache-2.0 */
/* Composing a task's SQL. */
#include "staging/staging.h"

#include "base/fault.h"
#include "plan/lower.h"
#include "source/source.h"

#include <stdio.h>

static void blocks_append(const schema *columns, size_t input, buf *out) {
  char call[40];
  snprintf(call, sizeof call, "hf_blocks('%zu')", input);
  lower_scan_sql(columns, call, true, out);
}

static void nothing_append(const schema *columns, buf *out) {
  buf_text(out, columns->n_columns == 0 ? "(SELECT NULL" : "(SELECT ");
  for (size_t i = 0; i < columns->n_columns; i++) {
    buf_text(out, i == 0 ? "CAST(NULL AS " : ", CAST(NULL AS ");
    data_type_to_sql(columns->columns[i].type, out);
    buf_char(out, ')');
    if (columns->columns[i].name[0] != '\0') { /* DuckDB takes no empty alias */
      buf_text(out, " AS ");
      buf_sql_name(out, columns->columns[i].name);
    } else {
      buf_printf(out, " AS c%zu", i);
    }
  }
  buf_text(out, FAULT("staging.no_rows") ? ")" : " WHERE false)");
}

static void scan_append(const stage_input *input, const task_input *given, size_t first, size_t end,
                        buf *out) {
  const row_range *range = given->ranges == NULL ? NULL : &given->ranges[first];
  if (range != NULL && range->count > 0) {
    source_range_sql(input->reader, given->files[first], range->first, range->count, out);
  } else {
    source_scan_sql(input->reader, given->files + first, end - first, out);
  }
}

/* Files in their order: whole files that follow one another are one scan, a part of a file is a scan of its own. */
static void files_append(const stage_input *input, const task_input *given, buf *out) {
  const row_range *ranges = given->ranges;
  size_t first = 0, n_scans = 0;
  buf scans = {0};
  for (size_t i = 1; i <= given->n_files; i++) {
    bool ends = i == given->n_files || (ranges != NULL && (ranges[i].count > 0 || ranges[first].count > 0));
    if (ends) {
      buf_text(&scans, n_scans++ == 0 ? "" : " UNION ALL SELECT * FROM ");
      scan_append(input, given, first, i, &scans);
      first = i;
    }
  }
  buf_text(out, n_scans > 1 ? "(SELECT * FROM " : "");
  buf_text(out, buf_cstr(&scans));
  buf_text(out, n_scans > 1 ? ")" : "");
  out->failed = out->failed || scans.failed;
  buf_reset(&scans);
}

static void input_append(const stage_input *input, const task_input *given, size_t i, buf *out) {
  if (input->kind == STAGE_INPUT_FILES && given->n_files > 0) {
    files_append(input, given, out);
  } else if (input->kind == STAGE_INPUT_BLOCKS && given->n_blocks > 0) {
    blocks_append(&input->columns, i, out);
  } else {
    nothing_append(&input->columns, out);
  }
}

hf_status task_sql_build(const stage_plan *plan, const task_spec *spec, buf *out, hf_error *error) {
  for (size_t i = 0; i < plan->n_pieces; i++) {
    const stage_piece *piece = &plan->pieces[i];
    if (piece->text != NULL) {
      buf_text(out, piece->text);
    } else {
      input_append(&plan->inputs[piece->input], &spec->inputs[piece->input], piece->input, out);
    }
  }
  return out->failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the SQL of a task") : HF_OK;
}
