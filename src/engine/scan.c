/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_scan('<id>'): the placeholder of a source while planning. It has the schema
 * and the row count of the source, gives no rows, and is bound up to three times
 * a scan, so binding is cheap and changes nothing. Blocks are read by hf_blocks
 * (blocks.c).
 * Thread: that of the statement.
 */
#include "engine_internal.h"

#include <stdio.h>
#include <string.h>

static const engine_scan *find_scan(const engine *e, const char *id) {
  for (size_t i = 0; i < e->n_scans; i++) {
    if (strcmp(e->scans[i].id, id) == 0) {
      return &e->scans[i];
    }
  }
  return NULL;
}

static hf_status add_columns(duckdb_bind_info info, const engine_scan *scan, hf_error *error) {
  for (size_t i = 0; i < scan->columns->n_columns; i++) {
    char name[24];
    snprintf(name, sizeof name, "c%zu", i);
    duckdb_logical_type type = NULL;
    HF_TRY(type_to_duckdb(scan->columns->columns[i].type, false, &type, error));
    duckdb_bind_add_result_column(info, scan->by_name ? scan->columns->columns[i].name : name, type);
    duckdb_destroy_logical_type(&type);
  }
  return HF_OK;
}

static void bind(duckdb_bind_info info) {
  const engine *e = duckdb_bind_get_extra_info(info);
  duckdb_value value = duckdb_bind_get_parameter(info, 0);
  char *id = duckdb_get_varchar(value);
  duckdb_destroy_value(&value);
  const engine_scan *scan = id == NULL ? NULL : find_scan(e, id);
  hf_error error = {0};
  if (scan == NULL) {
    duckdb_bind_set_error(info, "hf_scan knows no source of this id");
  } else if (add_columns(info, scan, &error) != HF_OK) {
    duckdb_bind_set_error(info, error.message == NULL ? "hf_scan failed" : error.message);
  } else {
    duckdb_bind_set_cardinality(info, scan->rows, scan->rows_exact);
  }
  hf_error_reset(&error);
  duckdb_free(id);
}

static void init(duckdb_init_info info) {
  (void)info;
}

static void give(duckdb_function_info info, duckdb_data_chunk out) {
  (void)info;
  duckdb_data_chunk_set_size(out, 0);
}

hf_status scan_register(engine *e, hf_error *error) {
  duckdb_table_function function = duckdb_create_table_function();
  duckdb_logical_type text = duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR);
  duckdb_table_function_set_name(function, "hf_scan");
  duckdb_table_function_add_parameter(function, text);
  duckdb_table_function_set_extra_info(function, e, NULL);
  duckdb_table_function_set_bind(function, bind);
  duckdb_table_function_set_init(function, init);
  duckdb_table_function_set_function(function, give);
  duckdb_table_function_supports_projection_pushdown(function, true);
  duckdb_state state = duckdb_register_table_function(e->main, function);
  duckdb_destroy_logical_type(&text);
  duckdb_destroy_table_function(&function);
  return state == DuckDBSuccess ? HF_OK : error_set(error, HF_E_INTERNAL, "DuckDB does not take hf_scan");
}
