/* SPDX-License-Identifier: Apache-2.0 */
/* Composing a task's SQL. */
#include "task_sql.h"

#include "source/source.h"

/* c<i>, cast where it crossed as something else: an ENUM comes back as VARCHAR. */
static void column_append(const column *c, size_t i, buf *out) {
  if (data_type_contains(c->type, TYPE_ENUM)) {
    buf_printf(out, "CAST(c%zu AS ", i);
    data_type_to_sql(c->type, out);
    buf_char(out, ')');
  } else {
    buf_printf(out, "c%zu", i);
  }
  buf_text(out, " AS ");
  buf_sql_name(out, c->name);
}

static void blocks_append(const schema *columns, size_t input, buf *out) {
  buf_text(out, columns->n_columns == 0 ? "(FROM" : "(SELECT ");
  for (size_t i = 0; i < columns->n_columns; i++) {
    buf_text(out, i == 0 ? "" : ", ");
    column_append(&columns->columns[i], i, out);
  }
  buf_printf(out, "%s hf_blocks('%zu'))", columns->n_columns == 0 ? "" : " FROM", input);
}

static void nothing_append(const schema *columns, buf *out) {
  buf_text(out, columns->n_columns == 0 ? "(SELECT NULL" : "(SELECT ");
  for (size_t i = 0; i < columns->n_columns; i++) {
    buf_text(out, i == 0 ? "CAST(NULL AS " : ", CAST(NULL AS ");
    data_type_to_sql(columns->columns[i].type, out);
    buf_text(out, ") AS ");
    buf_sql_name(out, columns->columns[i].name);
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
