/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of functions and aggregates, and windows. The allow-list of bound state is tree_functions.def. */
#include "tree/tree_internal.h"

#include <string.h>
#include <strings.h>

typedef enum treatment {
  TREAT_REBIND,
  TREAT_LAMBDA,
  TREAT_NAMED,
  TREAT_UPDATE,
  TREAT_SEPARATOR,
  TREAT_QUANTILE,
  TREAT_FRACTIONS,
  TREAT_BOUNDS,
  TREAT_INNER,
  TREAT_PARTS
} treatment;

static const struct function_row {
  const char *name;
  treatment treatment;
} function_rows[] = {
#define TREE_FUNCTION(name, treatment) {name, TREAT_##treatment},
#include "tree/tree_functions.def"
};

/* The language is in the name: icu_collate_de. */
static const char collation[] = "icu_collate_";
static const struct function_row collation_row = {collation, TREAT_REBIND};

static const struct function_row *find_function(const char *name) {
  if (strncmp(name, collation, sizeof collation - 1) == 0) {
    return &collation_row;
  }
  for (size_t i = 0; i < sizeof function_rows / sizeof function_rows[0]; i++) {
    if (strcmp(function_rows[i].name, name) == 0) {
      return &function_rows[i];
    }
  }
  return NULL;
}

static hf_status refuse_function(json_view *v, const char *name, const char *why) {
  return json_read_refuse(v->reader, TREE_REFUSED_FUNCTION, v->node, "%.100s: %s", name, why);
}

/* ------------------------------------------------------------------- state */

static const struct lambda_row {
  const char *name;
  size_t parameters;
} two_parameters[] = {{"list_reduce", 2}, {"array_reduce", 2}, {"reduce", 2}};

static size_t lambda_parameters(const char *name) {
  for (size_t i = 0; i < sizeof two_parameters / sizeof two_parameters[0]; i++) {
    if (strcmp(two_parameters[i].name, name) == 0) {
      return two_parameters[i].parameters;
    }
  }
  return 1;
}

/*
 * The body's references 0 … n-1 are the parameters, last first; behind them the captures, which are the call's
 * children behind the list (and the initial value of a reduce).
 */
static hf_status read_lambda(json_view *v, json_view *state, const tree_expression *e, tree_call *call) {
  const data_type *ignored = NULL;
  bool has_index = false;
  HF_TRY(tree_read_type(v->reader, json_read_take(state, "return_type"), &ignored));
  HF_TRY(json_read_bool(state, "has_index", &has_index));
  if (json_read_take(state, "has_initial") != NULL) {
    HF_TRY(json_read_bool(state, "has_initial", &call->has_initial));
  }
  struct json_object *body = json_read_take(state, "lambda_expr");
  size_t fixed = call->has_initial ? 2 : 1;
  if (body == NULL || e->n_children < fixed) {
    return refuse_function(v, call->name, "a lambda without body or list");
  }
  call->n_parameters = lambda_parameters(call->name) + (has_index ? 1 : 0);
  tree_space space = {.n = call->n_parameters + e->n_children - fixed};
  const data_type **types = arena_array(v->reader->a, space.n, sizeof(data_type *));
  if (types == NULL) {
    return json_read_no_memory(v->reader);
  }
  for (size_t i = fixed; i < e->n_children; i++) {
    types[call->n_parameters + i - fixed] = e->children[i]->type;
  }
  space.types = types;
  return tree_read_expression(v->reader, body, &space, &call->body);
}

static hf_status read_fractions(json_view *v, json_view *state, const tree_expression *e, tree_call *call) {
  static const data_type type_float = {.kind = TYPE_FLOAT};
  struct json_object *array = NULL;
  HF_TRY(json_read_array(state, "quantiles", &array, &call->n_quantiles));
  tree_value *values = arena_array(v->reader->a, call->n_quantiles + 1, sizeof *values);
  if (values == NULL) {
    return json_read_no_memory(v->reader);
  }
  for (size_t i = 0; i < call->n_quantiles; i++) {
    struct json_object *number = json_object_array_get_idx(array, i);
    if (!json_object_is_type(number, json_type_double) && !json_object_is_type(number, json_type_int)) {
      return refuse_function(v, call->name, "a quantile that is no number");
    }
    values[i] = (tree_value){.type = &type_float, .number = json_object_get_double(number)};
  }
  call->quantiles = values;
  call->quantiles_as_list = e->type->kind == TYPE_LIST;
  bool fits =
      e->n_children == 1 && call->n_quantiles > 0 && (call->n_quantiles == 1 || call->quantiles_as_list);
  return fits ? HF_OK : refuse_function(v, call->name, "quantiles of an unknown shape");
}

static hf_status read_quantiles(json_view *v, json_view *state, const tree_expression *e, tree_call *call) {
  static const char *const ignored[] = {"order"};
  HF_TRY(tree_read_values(state, "quantiles", &call->quantiles, &call->n_quantiles));
  HF_TRY(json_read_bool(state, "desc", &call->quantiles_descending));
  json_read_ignore(state, ignored, 1);
  if (e->n_children != 1 || call->n_quantiles == 0) {
    return refuse_function(v, call->name, "quantiles of an unknown shape");
  }
  /* one quantile of a column of lists has the column's type; a list of quantiles has a list of it */
  call->quantiles_as_list = e->type->kind == TYPE_LIST && !data_type_equal(e->type, e->children[0]->type);
  return call->n_quantiles == 1 || call->quantiles_as_list
             ? HF_OK
             : refuse_function(v, call->name, "several quantiles in one value");
}

/* NULL where statistics of the input would tell, which a stage has not. */
static hf_status read_bounds(json_view *v, json_view *state, const tree_expression *e, tree_call *call) {
  static const char *const keys[] = {"min", "max"};
  tree_value *values = arena_array(v->reader->a, 2, sizeof *values);
  if (values == NULL) {
    return json_read_no_memory(v->reader);
  }
  for (size_t i = 0; i < 2; i++) {
    struct json_object *value = json_read_take(state, keys[i]);
    if (value == NULL) {
      return refuse_function(v, call->name, "no bounds");
    }
    HF_TRY(tree_read_value(v->reader, value, NULL, &values[i]));
    if (values[i].is_null || e->n_children != 1) {
      return refuse_function(v, call->name, "no bounds");
    }
  }
  call->quantiles = values;
  call->n_quantiles = 2;
  return HF_OK;
}

static hf_status read_named(json_view *v, const tree_expression *e, const tree_call *call) {
  size_t kept =
      strcmp(call->name, "struct_insert") == 0 && e->n_children > 0 ? e->children[0]->type->n_children : 0;
  size_t added = kept > 0 ? e->n_children - 1 : e->n_children;
  bool has_names = e->type->kind == TYPE_STRUCT || e->type->kind == TYPE_UNION;
  return has_names && e->type->n_children == kept + added
             ? HF_OK
             : refuse_function(v, call->name, "names do not match");
}

static bool is_field(const data_type *type, size_t at, const char *name, const data_type *as) {
  return at < type->n_children && strcasecmp(type->names[at], name) == 0 &&
         data_type_equal(type->children[at], as);
}

static size_t field_of(const data_type *type, const char *name) {
  size_t at = 0;
  while (at < type->n_children && strcasecmp(type->names[at], name) != 0) {
    at++;
  }
  return at;
}

/* The fields of the result are those of the struct, where they are not replaced, and behind them the new ones. */
static bool is_update(const tree_expression *e, const char *const *names) {
  const data_type *from = e->children[0]->type, *to = e->type;
  size_t n = from->n_children;
  for (size_t i = 0; i < from->n_children; i++) {
    size_t by = 1;
    while (by < e->n_children && strcasecmp(names[by], from->names[i]) != 0) {
      by++;
    }
    const data_type *type = by < e->n_children ? e->children[by]->type : from->children[i];
    if (!is_field(to, i, from->names[i], type)) {
      return false;
    }
  }
  for (size_t i = 1; i < e->n_children; i++) {
    bool is_new = field_of(from, names[i]) == from->n_children;
    if (is_new && !is_field(to, n++, names[i], e->children[i]->type)) {
      return false;
    }
  }
  return n == to->n_children;
}

/* The names of struct_update's arguments are their aliases. */
static hf_status read_update(json_view *v, const tree_expression *e, tree_call *call) {
  struct json_object *children = NULL, *alias = NULL;
  const char **names = arena_array(v->reader->a, e->n_children + 1, sizeof *names);
  if (names == NULL) {
    return json_read_no_memory(v->reader);
  }
  json_object_object_get_ex(v->object, "children", &children);
  bool is_known =
      e->n_children > 1 && e->type->kind == TYPE_STRUCT && e->children[0]->type->kind == TYPE_STRUCT;
  for (size_t i = 1; is_known && i < e->n_children; i++) {
    is_known = json_object_object_get_ex(json_object_array_get_idx(children, i), "alias", &alias) &&
               json_object_get_string_len(alias) > 0;
    names[i] = is_known ? arena_strdup(v->reader->a, json_object_get_string(alias)) : NULL;
    if (is_known && names[i] == NULL) {
      return json_read_no_memory(v->reader);
    }
  }
  call->names = names;
  return is_known && is_update(e, names)
             ? HF_OK
             : refuse_function(v, call->name, "arguments whose names are not known");
}

/* list_aggregate and its like hold the aggregate; of one with state of its own only a separator can be said again. */
static hf_status read_inner(json_view *v, json_view *state, tree_call *call) {
  struct json_object *data = json_read_take(state, "bind_data");
  struct json_object *aggregate = NULL, *has = NULL;
  if (data == NULL) {
    return HF_OK;
  }
  bool is_known = json_object_is_type(data, json_type_object) &&
                  json_object_object_get_ex(data, "aggr_expr", &aggregate) &&
                  json_object_is_type(aggregate, json_type_object) &&
                  json_object_object_get_ex(aggregate, "has_serialize", &has);
  if (!is_known || !json_object_get_boolean(has)) {
    return is_known ? HF_OK : refuse_function(v, call->name, "an aggregate of an unknown shape");
  }
  struct json_object *name = NULL;
  json_object_object_get_ex(aggregate, "name", &name);
  const char *text = name == NULL ? "" : json_object_get_string(name);
  const struct function_row *row = find_function(text);
  if (row != NULL && row->treatment == TREAT_SEPARATOR) {
    json_view inner;
    struct json_object *data_of_inner = NULL;
    json_object_object_get_ex(aggregate, "function_data", &data_of_inner);
    HF_TRY(json_read_open(v->reader, data_of_inner, text, &inner));
    HF_TRY(json_read_text(&inner, "separator", &call->separator));
    return json_read_close(&inner);
  }
  return row != NULL && row->treatment == TREAT_REBIND
             ? HF_OK
             : refuse_function(v, text, "bound state inside list_aggregate");
}

static hf_status read_state(json_view *v, struct json_object *data, const tree_expression *e,
                            tree_call *call) {
  const struct function_row *row = find_function(call->name);
  if (row == NULL) {
    return refuse_function(v, call->name, "bound state that is not known");
  }
  if (row->treatment == TREAT_REBIND) {
    return HF_OK;
  }
  json_view state;
  HF_TRY(json_read_open(v->reader, data, call->name, &state));
  switch (row->treatment) {
    case TREAT_LAMBDA:
      HF_TRY(read_lambda(v, &state, e, call));
      return json_read_close(&state);
    case TREAT_SEPARATOR:
      HF_TRY(json_read_text(&state, "separator", &call->separator));
      return json_read_close(&state);
    case TREAT_QUANTILE:
      HF_TRY(read_quantiles(v, &state, e, call));
      return json_read_close(&state);
    case TREAT_FRACTIONS:
      HF_TRY(read_fractions(v, &state, e, call));
      return json_read_close(&state);
    case TREAT_BOUNDS:
      HF_TRY(read_bounds(v, &state, e, call));
      return json_read_close(&state);
    case TREAT_INNER:
      return read_inner(v, &state, call);
    case TREAT_UPDATE:
      return read_update(v, e, call);
    case TREAT_PARTS:
      return e->n_children == 1 && e->type->kind == TYPE_STRUCT
                 ? HF_OK
                 : refuse_function(v, call->name, "date parts of an unknown shape");
    default:
      return read_named(v, e, call);
  }
}

static bool is_lambda_argument(struct json_object *arguments) {
  size_t n = json_object_is_type(arguments, json_type_array) ? json_object_array_length(arguments) : 0;
  for (size_t i = 0; i < n; i++) {
    struct json_object *id = NULL;
    struct json_object *argument = json_object_array_get_idx(arguments, i);
    if (json_object_is_type(argument, json_type_object) && json_object_object_get_ex(argument, "id", &id) &&
        strcmp(json_object_get_string(id), "LAMBDA") == 0) {
      return true;
    }
  }
  return false;
}

bool tree_is_of_system(json_view *v) {
  struct json_object *catalog = json_read_take(v, "catalog_name");
  return catalog == NULL || json_object_get_string_len(catalog) == 0 ||
         strcmp(json_object_get_string(catalog), "system") == 0;
}

/* DuckDB folds these when it plans, so that a query has one time; in a plan made without folding they are left. */
static bool is_clock(const char *name) {
  static const char *const names[] = {
      "current_date",
      "current_localtime",
      "current_localtimestamp",
      "get_current_time",
      "now",
      "get_current_timestamp",
      "today",
      "transaction_timestamp",
  };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcasecmp(names[i], name) == 0) {
      return true;
    }
  }
  return false;
}

hf_status tree_read_call(json_view *v, const tree_space *space, tree_expression *e, tree_call *call) {
  static const char *const ignored[] = {"original_arguments", "schema_name"};
  bool has_state = false;
  HF_TRY(tree_read_expressions(v, "children", space, &e->children, &e->n_children));
  HF_TRY(json_read_text(v, "name", &call->name));
  HF_TRY(json_read_bool(v, "has_serialize", &has_state));
  json_read_ignore(v, ignored, 2);
  struct json_object *arguments = json_read_take(v, "arguments");
  if (!tree_is_of_system(v)) {
    return refuse_function(v, call->name, "not a function of DuckDB");
  }
  if (is_clock(call->name)) {
    return refuse_function(v, call->name, "the clock, read by each task");
  }
  struct json_object *data = json_read_take(v, "function_data");
  if (has_state) {
    HF_TRY(read_state(v, data, e, call));
  }
  if (call->body == NULL && is_lambda_argument(arguments)) {
    return refuse_function(v, call->name, "a lambda without body");
  }
  return HF_OK;
}

/* ----------------------------------------------------------------- windows */

static const char *const window_names[] = {
#define TREE_WINDOW(id, json, sql) json,
#include "tree/tree.def"
};
static const char *const bound_names[] = {
#define TREE_BOUND(id, json, unit) json,
#include "tree/tree.def"
};
static const char *const exclude_names[] = {
#define TREE_EXCLUDE(id, json, sql) json,
#include "tree/tree.def"
};

static hf_status read_frame(json_view *v, const tree_space *space, tree_window *w) {
  unsigned start = 0, end = 0, exclude = 0;
  HF_TRY(json_read_enum(v, "start", bound_names, BOUND_COUNT, &start));
  HF_TRY(json_read_enum(v, "end", bound_names, BOUND_COUNT, &end));
  HF_TRY(json_read_enum(v, "exclude_clause", exclude_names, EXCLUDE_COUNT, &exclude));
  w->start = (tree_bound)start;
  w->end = (tree_bound)end;
  w->exclude = (tree_exclude)exclude;
  HF_TRY(tree_read_optional(v, "start_expr", space, &w->start_offset));
  HF_TRY(tree_read_optional(v, "end_expr", space, &w->end_offset));
  if ((start >= BOUND_PRECEDING_ROWS) != (w->start_offset != NULL) ||
      (end >= BOUND_PRECEDING_ROWS) != (w->end_offset != NULL)) {
    return json_read_refuse(v->reader, TREE_REFUSED_SHAPE, v->node,
                            "a frame bound without its offset, or the other way");
  }
  return HF_OK;
}

hf_status tree_read_window(json_view *v, const tree_space *space, tree_expression *e) {
  unsigned function = 0;
  tree_window *w = arena_alloc(v->reader->a, sizeof *w);
  tree_call *call = arena_alloc(v->reader->a, sizeof *call);
  if (w == NULL || call == NULL) {
    return json_read_no_memory(v->reader);
  }
  e->window = w;
  w->call = call;
  HF_TRY(json_read_enum(v, "type", window_names, WINDOW_FUNCTION_COUNT, &function));
  w->function = (tree_window_function)function;
  if (w->function == WINDOW_AGGREGATE) {
    HF_TRY(tree_read_call(v, space, e, call));
  } else {
    HF_TRY(tree_read_expressions(v, "children", space, &e->children, &e->n_children));
  }
  HF_TRY(tree_read_expressions(v, "partitions", space, &w->partitions, &w->n_partitions));
  HF_TRY(tree_read_orders(v, "orders", space, &w->orders, &w->n_orders));
  HF_TRY(tree_read_orders(v, "arg_orders", space, &call->orders, &call->n_orders));
  HF_TRY(tree_read_optional(v, "filters", space, &call->filter));
  HF_TRY(json_read_bool(v, "ignore_nulls", &w->ignore_nulls));
  HF_TRY(json_read_bool(v, "distinct", &call->distinct));
  HF_TRY(tree_read_optional(v, "offset_expr", space, &w->offset));
  HF_TRY(tree_read_optional(v, "default_expr", space, &w->default_value));
  return read_frame(v, space, w);
}
