/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of blocks become vectors that point into the blocks' memory, or have a
 * copy of them. Columns of codes go their own way (coded.c), and so do those that
 * need no conversion (direct.c); which ones have codes may change from file to
 * file, and DuckDB's conversion of the others is prepared anew then. It needs
 * no connection of its own per thread: DuckDB takes from it the list of extension
 * types, which does not change.
 * Thread: a conversion is used by one of DuckDB's threads at a time.
 */
#include "engine_internal.h"

#include <string.h>

struct block_conversion {
  engine *engine;
  const run_input *input;
  size_t n_columns;
  const size_t *columns; /* of the input's */
  bool is_prepared;      /* for the columns that are plain now */
  bool has_checked_types;
  bool *is_coded;
  direct_column *direct; /* one a column, for when it has no codes */
  size_t n_plain;
  size_t *plain; /* numbers of n_columns: neither codes nor direct */
  struct ArrowSchema **plain_fields;
  struct ArrowArray **plain_arrays;
  duckdb_arrow_converted_schema converted; /* of the plain columns */
  coded_values *coded;                     /* one a column */
};

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read blocks");
}

static const data_type *type_of(const block_conversion *c, size_t i) {
  return c->input->from->columns->columns[c->columns[i]].type;
}

static struct ArrowSchema *field_of(const block_conversion *c, size_t i) {
  return &c->input->fields[c->columns[i]];
}

void block_conversion_free(block_conversion *c) {
  if (c == NULL) {
    return;
  }
  for (size_t i = 0; c->coded != NULL && i < c->n_columns; i++) {
    coded_values_reset(&c->coded[i]);
  }
  duckdb_destroy_arrow_converted_schema(&c->converted);
  mem_free(c->is_coded);
  mem_free(c->direct);
  mem_free(c->plain);
  mem_free(c->plain_fields);
  mem_free(c->plain_arrays);
  mem_free(c->coded);
  mem_free(c);
}

hf_status block_conversion_new(engine *e, const run_input *input, const size_t *columns, size_t n_columns,
                               block_conversion **out, hf_error *error) {
  block_conversion *c = mem_zalloc(1, sizeof *c);
  if (c == NULL) {
    return no_memory(error);
  }
  c->engine = e;
  c->input = input;
  c->n_columns = n_columns;
  c->columns = columns;
  c->is_coded = mem_zalloc(n_columns, sizeof *c->is_coded);
  c->direct = mem_zalloc(n_columns, sizeof *c->direct);
  c->plain = mem_zalloc(n_columns, sizeof *c->plain);
  c->plain_fields = mem_zalloc(n_columns, sizeof(struct ArrowSchema *));
  c->plain_arrays = mem_zalloc(n_columns, sizeof(struct ArrowArray *));
  c->coded = mem_zalloc(n_columns, sizeof *c->coded);
  if (c->is_coded == NULL || c->direct == NULL || c->plain == NULL || c->plain_fields == NULL ||
      c->plain_arrays == NULL || c->coded == NULL) {
    block_conversion_free(c);
    return no_memory(error);
  }
  for (size_t i = 0; i < n_columns; i++) {
    c->coded[i].type = type_of(c, i);
    c->coded[i].field = field_of(c, i);
    c->direct[i] = direct_column_of(type_of(c, i), field_of(c, i));
  }
  *out = c;
  return HF_OK;
}

/* --------------------------------------------------------------- plain columns */

static bool is_prepared_for(const block_conversion *c, const struct ArrowArray *rows) {
  bool is_same = c->is_prepared;
  for (size_t i = 0; is_same && i < c->n_columns; i++) {
    is_same = c->is_coded[i] == (rows->children[i]->dictionary != NULL);
  }
  return is_same;
}

/* Tells DuckDB the schema of the columns that are plain in these rows. */
static hf_status prepare(block_conversion *c, const struct ArrowArray *rows, hf_error *error) {
  if (is_prepared_for(c, rows)) {
    return HF_OK;
  }
  c->is_prepared = c->has_checked_types = false;
  c->n_plain = 0;
  for (size_t i = 0; i < c->n_columns; i++) {
    c->is_coded[i] = rows->children[i]->dictionary != NULL;
    if (!c->is_coded[i] && c->direct[i].way == DIRECT_NOT) {
      c->plain_fields[c->n_plain] = field_of(c, i);
      c->plain[c->n_plain++] = i;
    }
  }
  duckdb_destroy_arrow_converted_schema(&c->converted);
  c->converted = NULL;
  if (c->n_plain > 0) {
    struct ArrowSchema schema_of_rows = {.format = "+s",
                                         .name = "",
                                         .n_children = (int64_t)c->n_plain,
                                         .children = c->plain_fields,
                                         .release = run_release_nothing};
    duckdb_error_data failed = duckdb_schema_from_arrow(c->engine->main, &schema_of_rows, &c->converted);
    HF_TRY(failure_take(error, &failed));
  }
  c->is_prepared = true;
  return HF_OK;
}

static bool is_same_type(const data_type *wanted, const data_type *found) {
  type_kind kind = wanted->kind == TYPE_ENUM ? TYPE_VARCHAR : wanted->kind;
  if (kind != found->kind || wanted->width != found->width || wanted->scale != found->scale ||
      wanted->array_size != found->array_size || wanted->n_children != found->n_children) {
    return false;
  }
  for (size_t i = 0; i < wanted->n_children; i++) {
    if (!is_same_type(wanted->children[i], found->children[i])) {
      return false;
    }
  }
  return true;
}

static hf_status check_types_in(arena *a, const block_conversion *c, duckdb_data_chunk chunk,
                                hf_error *error) {
  for (size_t i = 0; i < c->n_plain; i++) {
    const data_type *found = NULL;
    const data_type *wanted = type_of(c, c->plain[i]);
    duckdb_logical_type type = duckdb_vector_get_column_type(duckdb_data_chunk_get_vector(chunk, i));
    hf_status status = type_from_duckdb(type, a, &found, error);
    duckdb_destroy_logical_type(&type);
    HF_TRY(status);
    if (!is_same_type(wanted, found)) {
      return error_set(error, HF_E_INTERNAL,
                       "blocks are not of the type that is read: column %zu is %s, expected %s",
                       c->columns[c->plain[i]], type_kind_name(found->kind), type_kind_name(wanted->kind));
    }
  }
  return HF_OK;
}

/* A vector of another type than was bound would be read as garbage. Once for each schema. */
static hf_status check_types(block_conversion *c, duckdb_data_chunk chunk, hf_error *error) {
  if (c->has_checked_types) {
    return HF_OK;
  }
  arena *a = arena_new();
  hf_status status = a == NULL ? no_memory(error) : check_types_in(a, c, chunk, error);
  arena_free(a);
  c->has_checked_types = status == HF_OK;
  return status;
}

/*
 * DuckDB adds the offset of a STRUCT to its direct children only, and that of a UNION to its tags only: other rows
 * would come, silently.
 */
static bool has_offset(const data_type *type, const struct ArrowArray *array) {
  if (type->kind != TYPE_STRUCT && type->kind != TYPE_UNION) {
    return false;
  }
  bool found = array->offset != 0;
  for (size_t i = 0; !found && i < type->n_children; i++) {
    found = has_offset(type->children[i], array->children[i]);
  }
  return found;
}

static hf_status check_array(const block_conversion *c, const struct ArrowArray *rows, hf_error *error) {
  if (rows->length > ENGINE_VECTOR_ROWS || rows->offset != 0 || (size_t)rows->n_children != c->n_columns) {
    return error_set(error, HF_E_INTERNAL,
                     "an array of blocks is not of the shape agreed: %lld rows from %lld, %lld columns",
                     (long long)rows->length, (long long)rows->offset, (long long)rows->n_children);
  }
  for (size_t i = 0; i < c->n_columns; i++) {
    if (has_offset(type_of(c, i), rows->children[i])) {
      return error_set(error, HF_E_INTERNAL,
                       "a STRUCT or UNION of an array of blocks has an offset: column %zu", c->columns[i]);
    }
  }
  return HF_OK;
}

static hf_status convert_in(block_conversion *c, const struct ArrowArray *rows, duckdb_data_chunk *chunk,
                            duckdb_data_chunk out, hf_error *error) {
  for (size_t i = 0; i < c->n_plain; i++) {
    c->plain_arrays[i] = rows->children[c->plain[i]];
  }
  struct ArrowArray given = *rows;
  given.n_children = (int64_t)c->n_plain;
  given.children = c->plain_arrays;
  given.release = NULL; /* the buffers stay until the run ends, the structs need not */
  duckdb_error_data failed = duckdb_data_chunk_from_arrow(c->engine->main, &given, c->converted, chunk);
  HF_TRY(failure_take(error, &failed));
  HF_TRY(check_types(c, *chunk, error));
  for (size_t i = 0; i < c->n_plain; i++) {
    size_t number = c->plain[i];
    duckdb_vector vector = duckdb_data_chunk_get_vector(*chunk, i);
    if (!c->input->is_exact) {
      exact_from_arrow(type_of(c, number), field_of(c, number), rows->children[number], vector);
    }
    duckdb_vector_reference_vector(duckdb_data_chunk_get_vector(out, number), vector);
  }
  return HF_OK;
}

static hf_status convert_plain(block_conversion *c, const struct ArrowArray *rows, duckdb_data_chunk out,
                               hf_error *error) {
  HF_TRY(prepare(c, rows, error));
  if (c->n_plain == 0) {
    return HF_OK;
  }
  duckdb_data_chunk chunk = NULL;
  hf_status status = convert_in(c, rows, &chunk, out, error);
  duckdb_destroy_data_chunk(&chunk);
  return status;
}

/* ------------------------------------------------------------------------ door */

hf_status block_convert(block_conversion *c, const struct ArrowArray *rows, duckdb_data_chunk out,
                        hf_error *error) {
  HF_TRY(c->n_columns == 0 ? HF_OK : check_array(c, rows, error));
  HF_TRY(c->n_columns == 0 ? HF_OK : convert_plain(c, rows, out, error));
  for (size_t i = 0; i < c->n_columns; i++) {
    duckdb_vector to = duckdb_data_chunk_get_vector(out, i);
    if (c->is_coded[i]) {
      HF_TRY(coded_convert(&c->coded[i], c->engine, rows->children[i], to, error));
    } else if (c->direct[i].way != DIRECT_NOT) {
      direct_from_arrow(c->direct[i], rows->children[i], to);
    }
  }
  duckdb_data_chunk_set_size(out, (idx_t)rows->length);
  return HF_OK;
}
