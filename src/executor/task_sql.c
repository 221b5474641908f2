/* SPDX-License-Identifier: Apache-2.0 */
/* Composing a task's SQL. */
#include "task_sql.h"

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
  buf_text(out, " WHERE false)");
}

static void input_append(const stage_input *input, const task_input *given, size_t i, buf *out) {
  if (input->kind == STAGE_INPUT_FILES && given->n_files > 0) {
    source_scan_sql(input->reader, given->files, given->n_files, out);
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
