/* SPDX-License-Identifier: Apache-2.0 */
/* GET of plan JSON: source, columns, filters, and table functions that take the rows of a child. */
#include "tree/tree_internal.h"

#include <string.h>

/* Columns that no source has: DuckDB numbers them from the top. */
#define ROWID_COLUMN UINT64_MAX
#define NO_COLUMN (UINT64_MAX - 1)
#define FIRST_VIRTUAL_COLUMN ((uint64_t)1 << 63)

/* ----------------------------------------------------------------- filters */

static hf_status read_filter(json_reader *r, struct json_object *object, const tree_expression *input,
                             const tree_expression **out);

/* A predicate of `n` children, which the caller fills through *children. */
static tree_expression *new_expression(json_reader *r, tree_expression_kind kind, size_t n,
                                       const tree_expression ***children) {
  tree_expression *e = arena_alloc(r->a, sizeof *e);
  *children = arena_array(r->a, n, sizeof(tree_expression *));
  if (e == NULL || *children == NULL) {
    return NULL;
  }
  e->kind = kind;
  e->type = &tree_type_boolean;
  e->n_children = n;
  e->children = *children;
  return e;
}

static hf_status new_comparison(json_view *v, const tree_expression *input, tree_value *value,
                                const tree_expression **out) {
  tree_comparison comparison = COMPARE_EQUAL;
  HF_TRY(tree_read_comparison(v, "comparison_type", &comparison));
  HF_TRY(tree_read_value(v->reader, json_read_take(v, "constant"), NULL, value));
  const tree_expression **children = NULL;
  tree_expression *e = new_expression(v->reader, EXPRESSION_COMPARISON, 2, &children);
  const tree_expression *constant = tree_new_constant(v->reader->a, value);
  if (e == NULL || constant == NULL) {
    return json_read_no_memory(v->reader);
  }
  e->comparison = comparison;
  children[0] = input;
  children[1] = constant;
  *out = e;
  return data_type_equal(value->type, input->type)
             ? HF_OK
             : json_read_refuse(v->reader, TREE_REFUSED_REFERENCE, v->node,
                                "a filter of %s over a column of %s", type_kind_name(value->type->kind),
                                type_kind_name(input->type->kind));
}

static hf_status read_constant_filter(json_view *v, const tree_expression *input,
                                      const tree_expression **out) {
  tree_value *value = arena_alloc(v->reader->a, sizeof *value);
  return value == NULL ? json_read_no_memory(v->reader) : new_comparison(v, input, value, out);
}

static hf_status new_operator(json_view *v, tree_operator operator, const tree_expression * input,
                              const tree_expression **out) {
  const tree_expression **children = NULL;
  tree_expression *e = new_expression(v->reader, EXPRESSION_OPERATOR, 1, &children);
  if (e == NULL) {
    return json_read_no_memory(v->reader);
  }
  e->operator= operator;
  children[0] = input;
  *out = e;
  return HF_OK;
}

static hf_status read_null_filter(json_view *v, const tree_expression *input, const tree_expression **out) {
  return new_operator(v, OPERATOR_IS_NULL, input, out);
}

static hf_status read_not_null_filter(json_view *v, const tree_expression *input,
                                      const tree_expression **out) {
  return new_operator(v, OPERATOR_IS_NOT_NULL, input, out);
}

static hf_status read_conjunction(json_view *v, bool is_or, const tree_expression *input,
                                  const tree_expression **out) {
  struct json_object *array = NULL;
  size_t n = 0, kept = 0;
  HF_TRY(json_read_array(v, "child_filters", &array, &n));
  const tree_expression **children = NULL;
  tree_expression *e = new_expression(v->reader, EXPRESSION_CONJUNCTION, n, &children);
  if (e == NULL) {
    return json_read_no_memory(v->reader);
  }
  for (size_t i = 0; i < n; i++) {
    const tree_expression *child = NULL;
    HF_TRY(read_filter(v->reader, json_object_array_get_idx(array, i), input, &child));
    if (child != NULL) {
      children[kept++] = child;
    }
  }
  e->is_or = is_or;
  e->n_children = kept;
  /* a hint may be dropped from an AND; an OR that holds one says nothing */
  *out = kept == 0 || (is_or && kept < n) ? NULL : e;
  return HF_OK;
}

static hf_status read_and_filter(json_view *v, const tree_expression *input, const tree_expression **out) {
  return read_conjunction(v, false, input, out);
}

static hf_status read_or_filter(json_view *v, const tree_expression *input, const tree_expression **out) {
  return read_conjunction(v, true, input, out);
}

static hf_status read_in_filter(json_view *v, const tree_expression *input, const tree_expression **out) {
  const tree_value *values = NULL;
  size_t n = 0;
  HF_TRY(tree_read_values(v, "values", &values, &n));
  const tree_expression **children = NULL;
  tree_expression *e = new_expression(v->reader, EXPRESSION_OPERATOR, n + 1, &children);
  if (e == NULL) {
    return json_read_no_memory(v->reader);
  }
  e->operator= OPERATOR_IN;
  children[0] = input;
  for (size_t i = 0; i < n; i++) {
    children[i + 1] = tree_new_constant(v->reader->a, &values[i]);
    if (e->children[i + 1] == NULL) {
      return json_read_no_memory(v->reader);
    }
  }
  *out = e;
  return n > 0 ? HF_OK : json_read_refuse(v->reader, TREE_REFUSED_SHAPE, v->node, "IN of no values");
}

/* struct_extract_at(column, field + 1) */
static hf_status new_extract(json_view *v, const tree_expression *input, size_t field,
                             const tree_expression **out) {
  json_reader *r = v->reader;
  if (input->type->kind != TYPE_STRUCT || field >= input->type->n_children) {
    return json_read_refuse(r, TREE_REFUSED_REFERENCE, v->node, "a field that is not there");
  }
  const tree_expression **children = NULL;
  tree_expression *e = new_expression(r, EXPRESSION_FUNCTION, 2, &children);
  tree_value *value = arena_alloc(r->a, sizeof *value);
  tree_call *call = arena_alloc(r->a, sizeof *call);
  if (e == NULL || value == NULL || call == NULL) {
    return json_read_no_memory(r);
  }
  value->type = &tree_type_bigint;
  value->lower = field + 1;
  call->name = "struct_extract_at";
  e->type = input->type->children[field];
  e->call = call;
  children[0] = input;
  children[1] = tree_new_constant(r->a, value);
  *out = e;
  return e->children[1] == NULL ? json_read_no_memory(r) : HF_OK;
}

static hf_status read_struct_filter(json_view *v, const tree_expression *input, const tree_expression **out) {
  uint64_t field = 0;
  const tree_expression *extract = NULL;
  HF_TRY(json_read_size(v, "child_idx", &field));
  (void)json_read_take(v, "child_name");
  HF_TRY(new_extract(v, input, (size_t)field, &extract));
  return read_filter(v->reader, json_read_take(v, "child_filter"), extract, out);
}

static hf_status read_expression_filter(json_view *v, const tree_expression *input,
                                        const tree_expression **out) {
  const data_type *const types[] = {input->type};
  tree_space space = {1, types, NULL};
  if (input->kind != EXPRESSION_REF) {
    return json_read_refuse(v->reader, TREE_REFUSED_SHAPE, v->node, "an expression over a field");
  }
  return tree_read_expression(v->reader, json_read_take(v, "expr"), &space, out);
}

/* Hints: the exact predicate stays in an operator above. */
static hf_status read_hint(json_view *v, const tree_expression *input, const tree_expression **out) {
  static const char *const ignored[] = {"child_filter",        "selectivity_threshold", "n_vectors_to_check",
                                        "filters_null_values", "key_column_name",       "key_type"};
  (void)input;
  json_read_ignore(v, ignored, sizeof ignored / sizeof ignored[0]);
  *out = NULL;
  return HF_OK;
}

typedef hf_status (*filter_reader)(json_view *v, const tree_expression *input, const tree_expression **out);
static const char *const filter_names[] = {"CONSTANT_COMPARISON", "IS_NULL",           "IS_NOT_NULL",
                                           "CONJUNCTION_AND",     "CONJUNCTION_OR",    "IN_FILTER",
                                           "STRUCT_EXTRACT",      "EXPRESSION_FILTER", "OPTIONAL_FILTER",
                                           "DYNAMIC_FILTER",      "BLOOM_FILTER"};
static const filter_reader filter_readers[] = {read_constant_filter,
                                               read_null_filter,
                                               read_not_null_filter,
                                               read_and_filter,
                                               read_or_filter,
                                               read_in_filter,
                                               read_struct_filter,
                                               read_expression_filter,
                                               read_hint,
                                               read_hint,
                                               read_hint};

static hf_status read_filter(json_reader *r, struct json_object *object, const tree_expression *input,
                             const tree_expression **out) {
  json_view v;
  unsigned kind = 0;
  *out = NULL;
  HF_TRY(json_read_open(r, object, "FILTER", &v));
  HF_TRY(
      json_read_enum(&v, "filter_type", filter_names, sizeof filter_names / sizeof filter_names[0], &kind));
  HF_TRY(json_read_descend(r, "FILTER"));
  HF_TRY(filter_readers[kind](&v, input, out));
  json_read_ascend(r);
  return json_read_close(&v);
}

/* {filters: [{key: column, value: filter}]} */
static hf_status read_filters(json_view *v, tree_scan *scan) {
  json_reader *r = v->reader;
  json_view set;
  struct json_object *array = NULL;
  size_t n = 0;
  HF_TRY(json_read_open(r, json_read_take(v, "table_filters"), v->node, &set));
  HF_TRY(json_read_array(&set, "filters", &array, &n));
  HF_TRY(json_read_close(&set));
  tree_scan_filter *filters = arena_array(r->a, n, sizeof *filters);
  if (filters == NULL) {
    return json_read_no_memory(r);
  }
  for (size_t i = 0; i < n; i++) {
    json_view pair;
    uint64_t key = 0;
    tree_scan_filter *filter = &filters[scan->n_filters];
    HF_TRY(json_read_open(r, json_object_array_get_idx(array, i), v->node, &pair));
    HF_TRY(json_read_size(&pair, "key", &key));
    filter->is_rowid = key == ROWID_COLUMN;
    if (!filter->is_rowid && key >= scan->n_source) {
      return json_read_refuse(r, TREE_REFUSED_REFERENCE, v->node, "a filter on no column");
    }
    filter->column = filter->is_rowid ? 0 : (size_t)key;
    const data_type *type = filter->is_rowid ? &tree_type_bigint : scan->source_types[key];
    const tree_expression *input = tree_new_ref(r->a, 0, type);
    if (input == NULL) {
      return json_read_no_memory(r);
    }
    HF_TRY(read_filter(r, json_read_take(&pair, "value"), input, &filter->expression));
    scan->n_filters += filter->expression != NULL;
    HF_TRY(json_read_close(&pair));
  }
  scan->filters = filters;
  return HF_OK;
}

/* ----------------------------------------------------------------- columns */

/* Follows nested child_indexes of one child each; fills path and the type at its end. */
static hf_status read_path(json_view *v, struct json_object *array, tree_scan_column *place,
                           const data_type **type) {
  json_reader *r = v->reader;
  size_t capacity = 0;
  size_t *path = NULL;
  while (json_object_is_type(array, json_type_array) && json_object_array_length(array) > 0) {
    struct json_object *child = json_object_array_get_idx(array, 0), *index = NULL, *next = NULL;
    bool is_index = json_object_array_length(array) == 1 && json_object_is_type(child, json_type_object) &&
                    json_object_object_get_ex(child, "index", &index) &&
                    json_object_is_type(index, json_type_int);
    uint64_t field = is_index ? json_object_get_uint64(index) : UINT64_MAX;
    if ((*type)->kind != TYPE_STRUCT || field >= (*type)->n_children) {
      return json_read_refuse(r, TREE_REFUSED_VALUE, v->node, "an extracted field of an unknown shape");
    }
    if (place->n_path == capacity) {
      size_t *longer = arena_array(r->a, capacity * 2 + 4, sizeof *longer);
      if (longer == NULL) {
        return json_read_no_memory(r);
      }
      memcpy(longer, path == NULL ? longer : path, place->n_path * sizeof *path);
      path = longer;
      capacity = capacity * 2 + 4;
    }
    path[place->n_path++] = (size_t)field;
    *type = (*type)->children[field];
    json_object_object_get_ex(child, "child_indexes", &next);
    array = next;
  }
  place->path = path;
  return HF_OK;
}

static hf_status read_scan_column(json_view *get_view, struct json_object *object, const tree_scan *scan,
                                  tree_scan_column *place, const data_type **type) {
  static const char *const kinds[] = {"FULL_READ", "PUSHDOWN_EXTRACT"};
  json_view v;
  unsigned kind = 0;
  uint64_t index = 0;
  const char *field = NULL;
  bool has_index = false;
  HF_TRY(json_read_open(get_view->reader, object, get_view->node, &v));
  HF_TRY(json_read_size(&v, "index", &index));
  HF_TRY(json_read_enum(&v, "index_type", kinds, 2, &kind));
  HF_TRY(json_read_text(&v, "field", &field));
  HF_TRY(json_read_bool(&v, "has_index", &has_index));
  (void)json_read_take(&v, "type");
  struct json_object *children = json_read_take(&v, "child_indexes");
  HF_TRY(json_read_close(&v));
  bool is_special = index == ROWID_COLUMN || index == NO_COLUMN;
  if (!has_index || field[0] != '\0' || (index >= FIRST_VIRTUAL_COLUMN && !is_special)) {
    return json_read_refuse(v.reader, TREE_REFUSED_VALUE, v.node, "a virtual column");
  }
  if (is_special) {
    static const data_type boolean = {.kind = TYPE_BOOLEAN};
    place->kind = index == ROWID_COLUMN ? SCAN_ROWID : SCAN_NOTHING;
    *type = index == ROWID_COLUMN ? &tree_type_bigint : &boolean;
    return HF_OK;
  }
  if (index >= scan->n_source) {
    return json_read_refuse(v.reader, TREE_REFUSED_REFERENCE, v.node, "column %llu of %zu",
                            (unsigned long long)index, scan->n_source);
  }
  place->column = (size_t)index;
  *type = scan->source_types[index];
  return kind == 0 ? HF_OK : read_path(get_view, children, place, type);
}

/* What gets out: the scanned columns through projection_ids, then the child's through projected_input. */
static hf_status read_columns(tree_building *b, tree_scan *scan) {
  json_reader *r = b->v->reader;
  struct json_object *array = NULL;
  size_t n = 0, n_ids = 0;
  const size_t *ids = NULL;
  uint64_t table = 0;
  HF_TRY(json_read_size(b->v, "table_index", &table));
  HF_TRY(json_read_array(b->v, "column_indexes", &array, &n));
  HF_TRY(json_read_indexes(b->v, "projection_ids", n, &ids, &n_ids));
  size_t n_passed_limit = b->n_children > 0 ? b->children[0].node->n_columns : 0;
  HF_TRY(json_read_indexes(b->v, "projected_input", n_passed_limit, &b->node->map, &b->node->n_map));
  scan->n_scanned = n_ids > 0 ? n_ids : n;
  tree_scan_column *columns = arena_array(r->a, scan->n_scanned, sizeof *columns);
  if (columns == NULL) {
    return json_read_no_memory(r);
  }
  HF_TRY(tree_set_columns(b, scan->n_scanned + b->node->n_map));
  for (size_t i = 0; i < scan->n_scanned; i++) {
    size_t at = n_ids > 0 ? ids[i] : i;
    const data_type *type = NULL;
    HF_TRY(read_scan_column(b->v, json_object_array_get_idx(array, at), scan, &columns[i], &type));
    tree_add_column(b, type, table, at);
  }
  for (size_t i = 0; i < b->node->n_map; i++) {
    tree_pass_column(b, 0, b->node->map[i]);
  }
  scan->scanned = columns;
  return HF_OK;
}

/* ------------------------------------------------------------------ source */

static hf_status read_table(json_view *v, tree_scan *scan) {
  json_view data;
  bool is_index = false, is_create = false;
  struct json_object *ids = NULL;
  size_t n_ids = 0;
  HF_TRY(json_read_open(v->reader, json_read_take(v, "function_data"), v->node, &data));
  HF_TRY(json_read_text(&data, "catalog", &scan->catalog));
  HF_TRY(json_read_text(&data, "schema", &scan->schema));
  HF_TRY(json_read_text(&data, "table", &scan->table));
  HF_TRY(json_read_bool(&data, "is_index_scan", &is_index));
  HF_TRY(json_read_bool(&data, "is_create_index", &is_create));
  HF_TRY(json_read_array(&data, "result_ids", &ids, &n_ids));
  if (is_create || n_ids > 0) {
    return json_read_refuse(v->reader, TREE_REFUSED_VALUE, v->node, "a scan of given rows");
  }
  return json_read_close(&data);
}

static hf_status refuse_if_set(json_view *v, const char *const *keys, size_t n) {
  for (size_t i = 0; i < n; i++) {
    bool is_set = false;
    HF_TRY(json_read_bool(v, keys[i], &is_set));
    if (is_set) {
      return json_read_refuse(v->reader, TREE_REFUSED_VALUE, v->node, "%s is set", keys[i]);
    }
  }
  return HF_OK;
}

static hf_status read_parquet_options(json_view *v, struct json_object *object) {
  static const char *const unhandled[] = {"binary_as_string", "file_row_number"};
  static const char *const ignored[] = {"explicit_cardinality", "can_have_nan"};
  static const char *const unhandled_files[] = {"filename", "hive_partitioning", "union_by_name"};
  static const char *const ignored_files[] = {"auto_detect_hive_partitioning", "hive_types_autocast",
                                              "hive_types_schema", "filename_column"};
  json_view options, files;
  struct json_object *columns = NULL;
  size_t n = 0;
  HF_TRY(json_read_open(v->reader, object, v->node, &options));
  HF_TRY(refuse_if_set(&options, unhandled, 2));
  json_read_ignore(&options, ignored, 2);
  HF_TRY(json_read_array(&options, "schema", &columns, &n));
  HF_TRY(json_read_open(v->reader, json_read_take(&options, "file_options"), v->node, &files));
  HF_TRY(refuse_if_set(&files, unhandled_files, 3));
  json_read_ignore(&files, ignored_files, 4);
  HF_TRY(json_read_close(&files));
  HF_TRY(json_read_close(&options));
  return n == 0 ? HF_OK : json_read_refuse(v->reader, TREE_REFUSED_VALUE, v->node, "a schema given by hand");
}

static hf_status read_parquet(json_view *v, tree_scan *scan) {
  static const char *const ignored[] = {"types", "names"};
  json_view data;
  HF_TRY(json_read_open(v->reader, json_read_take(v, "function_data"), v->node, &data));
  HF_TRY(json_read_texts(&data, "files", &scan->files, &scan->n_files));
  json_read_ignore(&data, ignored, 2);
  HF_TRY(read_parquet_options(v, json_read_take(&data, "parquet_options")));
  return json_read_close(&data);
}

static hf_status read_parameters(json_view *v, tree_scan *scan) {
  static const char *const ignored[] = {"input_table_types", "input_table_names"};
  json_reader *r = v->reader;
  struct json_object *array = NULL;
  HF_TRY(tree_read_values(v, "parameters", &scan->parameters, &scan->n_parameters));
  HF_TRY(json_read_array(v, "named_parameters", &array, &scan->n_named));
  const char **names = arena_array(r->a, scan->n_named, sizeof(char *));
  tree_value *values = arena_array(r->a, scan->n_named, sizeof *values);
  if (names == NULL || values == NULL) {
    return json_read_no_memory(r);
  }
  for (size_t i = 0; i < scan->n_named; i++) {
    json_view pair;
    HF_TRY(json_read_open(r, json_object_array_get_idx(array, i), v->node, &pair));
    HF_TRY(json_read_text(&pair, "key", &names[i]));
    HF_TRY(tree_read_value(r, json_read_take(&pair, "value"), NULL, &values[i]));
    HF_TRY(json_read_close(&pair));
  }
  scan->named = names;
  scan->named_values = values;
  json_read_ignore(v, ignored, 2);
  return HF_OK;
}

static hf_status read_source(json_view *v, tree_scan *scan) {
  static const char *const ignored[] = {"arguments", "original_arguments", "schema_name"};
  bool has_state = false;
  size_t n_names = 0;
  HF_TRY(json_read_text(v, "name", &scan->function));
  HF_TRY(json_read_bool(v, "has_serialize", &has_state));
  HF_TRY(tree_read_types(v, "returned_types", &scan->source_types, &scan->n_source));
  HF_TRY(json_read_texts(v, "names", &scan->source_names, &n_names));
  json_read_ignore(v, ignored, 3);
  if (!tree_is_of_system(v)) {
    return json_read_refuse(v->reader, TREE_REFUSED_FUNCTION, v->node, "%.100s: not a function of DuckDB",
                            scan->function);
  }
  if (n_names != scan->n_source) {
    return json_read_refuse(v->reader, TREE_REFUSED_UNREADABLE, v->node, "%zu names of %zu columns", n_names,
                            scan->n_source);
  }
  if (!has_state) {
    return read_parameters(v, scan);
  }
  if (strcmp(scan->function, "seq_scan") == 0) {
    return read_table(v, scan);
  }
  if (strcmp(scan->function, "read_parquet") == 0 || strcmp(scan->function, "parquet_scan") == 0) {
    return read_parquet(v, scan);
  }
  return json_read_refuse(v->reader, TREE_REFUSED_FUNCTION, v->node, "table function %.100s", scan->function);
}

/*
 * extra_info may hide a sample or files that filters have ruled out; an order of row groups may have taken whole row
 * groups out of an OFFSET.
 */
static hf_status refuse_extras(json_view *v) {
  static const char *const counts[] = {"total_files", "filtered_files"};
  static const char *const hints[] = {"column_idx", "order_by",    "order_type",
                                      "null_order", "column_type", "row_limit"};
  json_view extra, order;
  const char *file_filters = "";
  uint64_t group_offset = 0, null_offset = 0;
  struct json_object *object = json_read_take(v, "extra_info");
  if (object != NULL) {
    HF_TRY(json_read_open(v->reader, object, v->node, &extra));
    HF_TRY(json_read_text(&extra, "file_filters", &file_filters));
    json_read_ignore(&extra, counts, 2);
    HF_TRY(json_read_close(&extra));
  }
  object = json_read_take(v, "row_group_order_options");
  if (object != NULL) {
    HF_TRY(json_read_open(v->reader, object, v->node, &order));
    json_read_ignore(&order, hints, 6);
    HF_TRY(json_read_size(&order, "row_group_offset", &group_offset));
    HF_TRY(json_read_size(&order, "leading_null_group_offset", &null_offset));
    HF_TRY(json_read_close(&order));
  }
  if (file_filters[0] != '\0' || group_offset > 0 || null_offset > 0) {
    return json_read_refuse(v->reader, TREE_REFUSED_VALUE, v->node, "%s left out of the scan",
                            file_filters[0] != '\0' ? "files" : "row groups");
  }
  struct json_object *ordinality = json_read_take(v, "ordinality_idx");
  if (ordinality != NULL && json_object_get_uint64(ordinality) != UINT64_MAX) {
    return json_read_refuse(v->reader, TREE_REFUSED_VALUE, v->node, "WITH ORDINALITY");
  }
  return HF_OK;
}

/* A function over its child's rows: arguments are the child's first columns, the others are passed on. */
static hf_status check_in_out(tree_building *b, const tree_scan *scan) {
  static const char *const names[] = {"range", "generate_series", "unnest"};
  size_t n = b->children[0].node->n_columns, n_arguments = n - b->node->n_map;
  bool is_known = b->node->n_map <= n && scan->n_filters == 0;
  for (size_t i = 0; is_known && i < b->node->n_map; i++) {
    is_known = b->node->map[i] == n_arguments + i;
  }
  for (size_t i = 0; is_known && i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(names[i], scan->function) == 0) {
      return HF_OK;
    }
  }
  return json_read_refuse(b->v->reader, TREE_REFUSED_FUNCTION, b->v->node, "%.100s over rows",
                          scan->function);
}

hf_status tree_read_get(tree_building *b) {
  tree_scan *scan = arena_alloc(b->v->reader->a, sizeof *scan);
  if (scan == NULL) {
    return json_read_no_memory(b->v->reader);
  }
  b->node->scan = scan;
  HF_TRY(read_source(b->v, scan));
  HF_TRY(read_filters(b->v, scan));
  HF_TRY(read_columns(b, scan));
  HF_TRY(refuse_extras(b->v));
  return b->n_children == 0 ? HF_OK : check_in_out(b, scan);
}
