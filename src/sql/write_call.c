/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, aggregates and windows as SQL. Operators are written as calls of
 * their names in quotes: "+"(a, b). Each call is cast to the plan's type.
 */
#include "sql/write_internal.h"

#include <string.h>

static bool is_any(const char *name, const char *const *names, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (strcmp(names[i], name) == 0) {
      return true;
    }
  }
  return false;
}

#define IS_ANY(name, names) is_any((name), (names), sizeof(names) / sizeof((names)[0]))

/* A predicate cannot re-bind to another type; a type without a name cannot be cast to. */
static bool is_cast_written(const data_type *type) {
  return type->kind != TYPE_BOOLEAN && write_can_name(type);
}

static void begin_cast(writer *w, const data_type *type) {
  buf_text(write_to(w), is_cast_written(type) ? "CAST(" : "");
}

static void end_cast(writer *w, const data_type *type) {
  if (is_cast_written(type)) {
    buf_text(write_to(w), " AS ");
    write_type(w, type);
    buf_char(write_to(w), ')');
  }
}

/* --------------------------------------------------------------- functions */

/* Lambda parameters are p<level>_0 …: lambdas lie in one another. */
static hf_status write_lambda(writer *w, const write_scope *scope, const tree_expression *e) {
  const tree_call *call = e->call;
  size_t fixed = call->has_initial ? 2 : 1;
  write_scope body = {.kind = SCOPE_LAMBDA,
                      .level = ++w->lambda_level,
                      .n_parameters = call->n_parameters,
                      .captures = e->children + fixed,
                      .outer = scope};
  buf_sql_name(write_to(w), call->name);
  buf_char(write_to(w), '(');
  HF_TRY(write_expression(w, scope, e->children[0]));
  buf_text(write_to(w), ", lambda ");
  for (size_t i = 0; i < call->n_parameters; i++) {
    buf_printf(write_to(w), "%sp%zu_%zu", i > 0 ? ", " : "", body.level, i);
  }
  buf_text(write_to(w), ": ");
  HF_TRY(write_expression(w, &body, call->body));
  if (call->has_initial) {
    buf_text(write_to(w), ", ");
    HF_TRY(write_expression(w, scope, e->children[1]));
  }
  buf_char(write_to(w), ')');
  return HF_OK;
}

/* An empty list in place of a bound stands for an open bound. */
static bool is_open_bound(const tree_expression *e) {
  return e->kind == EXPRESSION_CONSTANT && e->type->kind == TYPE_LIST && !e->value->is_null &&
         e->value->n_children == 0;
}

static hf_status write_slice(writer *w, const write_scope *scope, const tree_expression *e) {
  buf_char(write_to(w), '(');
  HF_TRY(write_expression(w, scope, e->children[0]));
  buf_text(write_to(w), ")[");
  if (!is_open_bound(e->children[1])) {
    HF_TRY(write_expression(w, scope, e->children[1]));
  }
  buf_char(write_to(w), ':');
  if (!is_open_bound(e->children[2])) {
    HF_TRY(write_expression(w, scope, e->children[2]));
  } else if (e->n_children > 3) {
    buf_char(write_to(w), '-');
  }
  if (e->n_children > 3) {
    buf_char(write_to(w), ':');
    HF_TRY(write_expression(w, scope, e->children[3]));
  }
  buf_char(write_to(w), ']');
  return HF_OK;
}

/* Arguments named after the fields of the result; `first` of them have no name. */
static hf_status write_named_call(writer *w, const write_scope *scope, const tree_expression *e,
                                  size_t first) {
  size_t offset = e->type->n_children - (e->n_children - first);
  buf_sql_name(write_to(w), e->call->name);
  buf_char(write_to(w), '(');
  for (size_t i = 0; i < e->n_children; i++) {
    buf_text(write_to(w), i > 0 ? ", " : "");
    if (i >= first) {
      buf_sql_name(write_to(w), e->type->names[offset + i - first]);
      buf_text(write_to(w), " := ");
    }
    HF_TRY(write_expression(w, scope, e->children[i]));
  }
  buf_char(write_to(w), ')');
  return HF_OK;
}

static hf_status write_update(writer *w, const write_scope *scope, const tree_expression *e) {
  buf_sql_name(write_to(w), e->call->name);
  buf_char(write_to(w), '(');
  HF_TRY(write_expression(w, scope, e->children[0]));
  for (size_t i = 1; i < e->n_children; i++) {
    buf_text(write_to(w), ", ");
    buf_sql_name(write_to(w), e->call->names[i]);
    buf_text(write_to(w), " := ");
    HF_TRY(write_expression(w, scope, e->children[i]));
  }
  buf_char(write_to(w), ')');
  return HF_OK;
}

/* Whether two types differ in the names of fields only. */
static bool is_alike(const data_type *a, const data_type *b) {
  bool alike = a->kind == b->kind && a->n_children == b->n_children && a->array_size == b->array_size;
  for (size_t i = 0; alike && i < a->n_children; i++) {
    alike = is_alike(a->children[i], b->children[i]);
  }
  return alike && (a->n_children > 0 || data_type_equal(a, b));
}

/* A cast to a type without a name, which the binder makes again: map_from_entries takes structs of any names. */
static const tree_expression *without_relabel(const tree_expression *e) {
  bool is_relabel = e->kind == EXPRESSION_CAST && !e->try_cast && !write_can_name(e->type) &&
                    is_alike(e->type, e->children[0]->type);
  return is_relabel ? e->children[0] : e;
}

static hf_status write_plain_call(writer *w, const write_scope *scope, const char *name,
                                  const tree_expression *const *arguments, size_t n) {
  buf_sql_name(write_to(w), name);
  buf_char(write_to(w), '(');
  for (size_t i = 0; i < n; i++) {
    buf_text(write_to(w), i > 0 ? ", " : "");
    HF_TRY(write_expression(w, scope, without_relabel(arguments[i])));
  }
  buf_char(write_to(w), ')');
  return HF_OK;
}

/* list_aggregate(l, 'string_agg', separator): binding took the separator out of the arguments. */
static hf_status write_separated(writer *w, const write_scope *scope, const tree_expression *e) {
  buf_sql_name(write_to(w), e->call->name);
  buf_char(write_to(w), '(');
  HF_TRY(write_expressions(w, scope, e->children, e->n_children, ", "));
  buf_text(write_to(w), ", ");
  buf_sql_string(write_to(w), e->call->separator);
  buf_char(write_to(w), ')');
  return HF_OK;
}

static hf_status write_row(writer *w, const write_scope *scope, const tree_expression *e) {
  buf_text(write_to(w), "row(");
  HF_TRY(write_expressions(w, scope, e->children, e->n_children, ", "));
  buf_char(write_to(w), ')');
  return HF_OK;
}

/* date_part(['year', …], x): the result's fields are the parts. */
static hf_status write_parts(writer *w, const write_scope *scope, const tree_expression *e) {
  buf_sql_name(write_to(w), e->call->name);
  buf_text(write_to(w), "([");
  for (size_t i = 0; i < e->type->n_children; i++) {
    buf_text(write_to(w), i > 0 ? ", " : "");
    buf_sql_string(write_to(w), e->type->names[i]);
  }
  buf_text(write_to(w), "], ");
  HF_TRY(write_expression(w, scope, e->children[0]));
  buf_char(write_to(w), ')');
  return HF_OK;
}

/* ---------------------------------------------------------------- decimals */

/* What the binder was given: the argument before it was cast to another DECIMAL. */
static const tree_expression *uncast(const tree_expression *e) {
  bool is_cast = e->kind == EXPRESSION_CAST && !e->try_cast && e->children[0]->type->kind == TYPE_DECIMAL;
  return is_cast ? e->children[0] : e;
}

typedef struct decimal_rule {
  int width, scale;
} decimal_rule;

enum { NARROW_WIDTH = 18, WIDEST_WIDTH = 38 };

/* The type that + and - bind to. Source: DuckDB, function/scalar/operator/arithmetic.cpp. */
static decimal_rule sum_rule(const data_type *a, const data_type *b) {
  int scale = a->scale > b->scale ? a->scale : b->scale;
  int whole_a = a->width - a->scale, whole_b = b->width - b->scale;
  int whole = whole_a > whole_b ? whole_a : whole_b, widest = a->width > b->width ? a->width : b->width;
  int width = (scale + whole > widest ? scale + whole : widest) + 1;
  if (width > NARROW_WIDTH && widest <= NARROW_WIDTH) {
    width = NARROW_WIDTH;
  }
  return (decimal_rule){width > WIDEST_WIDTH ? WIDEST_WIDTH : width, scale};
}

/* The type that * binds to. Source: as above. */
static decimal_rule product_rule(const data_type *a, const data_type *b) {
  int scale = a->scale + b->scale, width = a->width + b->width,
      widest = a->width > b->width ? a->width : b->width;
  if (width > NARROW_WIDTH && widest <= NARROW_WIDTH && scale < NARROW_WIDTH) {
    width = NARROW_WIDTH;
  }
  return (decimal_rule){width > WIDEST_WIDTH ? WIDEST_WIDTH : width, scale};
}

/*
 * The binder cast both arguments to the result's width; binding again would widen once more. Their casts are left out
 * where the binder then finds the plan's type again.
 */
static hf_status write_decimal_call(writer *w, const write_scope *scope, const tree_expression *e) {
  const tree_expression *arguments[] = {uncast(e->children[0]), uncast(e->children[1])};
  const data_type *a = arguments[0]->type, *b = arguments[1]->type;
  if (a->kind == TYPE_DECIMAL && b->kind == TYPE_DECIMAL) {
    decimal_rule rule = e->call->name[0] == '*' ? product_rule(a, b) : sum_rule(a, b);
    if (rule.width == e->type->width && rule.scale == e->type->scale) {
      return write_plain_call(w, scope, e->call->name, arguments, 2);
    }
  }
  return write_plain_call(w, scope, e->call->name, e->children, e->n_children);
}

static hf_status write_function_call(writer *w, const write_scope *scope, const tree_expression *e) {
  static const char *const slices[] = {"array_slice", "list_slice"};
  static const char *const parts[] = {"date_part", "datepart"};
  static const char *const sums[] = {"+", "-", "*"};
  static const char *const named[] = {"struct_pack", "union_value"};
  const char *name = e->call->name;
  if (e->call->body != NULL) {
    return write_lambda(w, scope, e);
  }
  if (e->call->separator != NULL) {
    return write_separated(w, scope, e);
  }
  if (strcmp(name, "row") == 0) {
    return write_row(w, scope, e);
  }
  if (IS_ANY(name, slices) && e->n_children >= 3) {
    return write_slice(w, scope, e);
  }
  if (IS_ANY(name, named)) {
    return write_named_call(w, scope, e, 0);
  }
  if (strcmp(name, "struct_insert") == 0) {
    return write_named_call(w, scope, e, 1);
  }
  if (e->call->names != NULL) {
    return write_update(w, scope, e);
  }
  if (IS_ANY(name, parts) && e->n_children == 1) {
    return write_parts(w, scope, e);
  }
  if (IS_ANY(name, sums) && e->n_children == 2 && e->type->kind == TYPE_DECIMAL) {
    return write_decimal_call(w, scope, e);
  }
  return write_plain_call(w, scope, name, e->children, e->n_children);
}

hf_status write_function(writer *w, const write_scope *scope, const tree_expression *e) {
  static const char *const refused[] = {"in_search_path", "stats", "write_log"};
  if (IS_ANY(e->call->name, refused) || strncmp(e->call->name, "__internal", strlen("__internal")) == 0) {
    return write_refuse(w, TREE_REFUSED_FUNCTION, "BOUND_FUNCTION", "%.100s", e->call->name);
  }
  begin_cast(w, e->type);
  HF_TRY(write_function_call(w, scope, e));
  end_cast(w, e->type);
  return HF_OK;
}

/* -------------------------------------------------------------- aggregates */

static bool is_zero(const tree_value *value) {
  bool is_float = value->type->kind == TYPE_DOUBLE || value->type->kind == TYPE_FLOAT;
  return is_float ? value->number == 0 : value->lower == 0 && value->upper == 0;
}

/* A descending quantile is a negative one; there is no negative zero to say it with. */
static hf_status write_quantiles(writer *w, const tree_call *call) {
  buf_text(write_to(w), call->quantiles_as_list ? ", [" : ", ");
  for (size_t i = 0; i < call->n_quantiles; i++) {
    const tree_value *value = &call->quantiles[i];
    if (call->quantiles_descending && is_zero(value)) {
      return write_refuse(w, TREE_REFUSED_SHAPE, "BOUND_AGGREGATE", "%.100s: descending from 0", call->name);
    }
    bool is_typed = value->type->kind == TYPE_DECIMAL || value->type->kind == TYPE_FLOAT;
    buf_printf(write_to(w), "%s%s%s", i > 0 ? ", " : "", call->quantiles_descending ? "-" : "",
               is_typed ? "" : "CAST(");
    HF_TRY(write_value(w, value));
    buf_text(write_to(w), is_typed ? "" : " AS DOUBLE)");
  }
  buf_text(write_to(w), call->quantiles_as_list ? "]" : "");
  return HF_OK;
}

/* The bounds of bitstring_agg. */
static hf_status write_bounds(writer *w, const tree_call *call) {
  for (size_t i = 0; i < call->n_quantiles; i++) {
    buf_text(write_to(w), ", ");
    HF_TRY(write_value(w, &call->quantiles[i]));
  }
  return HF_OK;
}

/* Writes name(arguments …, without the closing parenthesis. */
static hf_status begin_aggregate(writer *w, const write_scope *scope, const tree_expression *e,
                                 const tree_call *call) {
  buf *out = write_to(w);
  if (strcmp(call->name, "count_star") == 0) {
    buf_text(out, "count(*");
    return HF_OK;
  }
  buf_sql_name(out, strcmp(call->name, "sum_no_overflow") == 0 ? "sum" : call->name);
  buf_text(out, call->distinct ? "(DISTINCT " : "(");
  HF_TRY(write_expressions(w, scope, e->children, e->n_children, ", "));
  if (call->n_quantiles > 0) {
    HF_TRY(strcmp(call->name, "bitstring_agg") == 0 ? write_bounds(w, call) : write_quantiles(w, call));
  }
  if (call->separator != NULL) {
    buf_text(out, ", ");
    buf_sql_string(out, call->separator);
  }
  return HF_OK;
}

static hf_status write_argument_orders(writer *w, const write_scope *scope, const tree_call *call) {
  buf_text(write_to(w), call->n_orders > 0 ? " ORDER BY " : "");
  return write_orders(w, scope, call->orders, call->n_orders);
}

static hf_status write_call_filter(writer *w, const write_scope *scope, const tree_call *call) {
  if (call->filter == NULL) {
    return HF_OK;
  }
  buf_text(write_to(w), " FILTER (WHERE ");
  HF_TRY(write_expression(w, scope, call->filter));
  buf_char(write_to(w), ')');
  return HF_OK;
}

hf_status write_aggregate(writer *w, const write_scope *scope, const tree_expression *e) {
  begin_cast(w, e->type);
  HF_TRY(begin_aggregate(w, scope, e, e->call));
  HF_TRY(write_argument_orders(w, scope, e->call));
  buf_char(write_to(w), ')');
  HF_TRY(write_call_filter(w, scope, e->call));
  end_cast(w, e->type);
  return HF_OK;
}

/* ----------------------------------------------------------------- windows */

static const char *const window_sql[] = {
#define TREE_WINDOW(id, json, sql) sql,
#include "tree/tree.def"
};
static const char bound_units[] = {
#define TREE_BOUND(id, json, unit) unit,
#include "tree/tree.def"
};
static const char *const exclude_sql[] = {
#define TREE_EXCLUDE(id, json, sql) sql,
#include "tree/tree.def"
};

static hf_status write_window_call(writer *w, const write_scope *scope, const tree_expression *e) {
  const tree_window *window = e->window;
  buf *out = write_to(w);
  if (window->function == WINDOW_AGGREGATE) {
    HF_TRY(begin_aggregate(w, scope, e, window->call));
  } else {
    buf_printf(out, "%s(%s", window_sql[window->function], window->call->distinct ? "DISTINCT " : "");
    HF_TRY(write_expressions(w, scope, e->children, e->n_children, ", "));
  }
  if (window->offset != NULL) {
    buf_text(out, ", ");
    HF_TRY(write_expression(w, scope, window->offset));
  }
  if (window->default_value != NULL) {
    buf_text(out, window->offset == NULL ? ", CAST('1' AS BIGINT), " : ", ");
    HF_TRY(write_expression(w, scope, window->default_value));
  }
  HF_TRY(write_argument_orders(w, scope, window->call));
  buf_text(out, window->ignore_nulls ? " IGNORE NULLS)" : ")");
  return write_call_filter(w, scope, window->call);
}

static const tree_expression *without_casts(const tree_expression *e) {
  while (e->kind == EXPRESSION_CAST) {
    e = e->children[0];
  }
  return e;
}

/*
 * The binder replaced the offset of a RANGE bound by key - offset or key + offset. The offset is taken back only when
 * the other operand is the key: an optimised `key - 0` may look like another difference.
 */
static hf_status range_offset(writer *w, const write_scope *scope, const tree_window *window,
                              const tree_expression *bound, const tree_expression **out) {
  const char *key = NULL, *operand = NULL;
  const tree_expression *e = without_casts(bound);
  bool is_sum = e->kind == EXPRESSION_FUNCTION && e->n_children == 2 && e->call->name[1] == '\0' &&
                (e->call->name[0] == '+' || e->call->name[0] == '-');
  if (!is_sum || window->n_orders != 1) {
    return write_refuse(w, TREE_REFUSED_SHAPE, "BOUND_WINDOW", "a RANGE bound of an unknown shape");
  }
  HF_TRY(write_aside(w, scope, without_casts(window->orders[0].expression), &key));
  HF_TRY(write_aside(w, scope, without_casts(e->children[0]), &operand));
  if (strcmp(key, operand) != 0) {
    return write_refuse(w, TREE_REFUSED_SHAPE, "BOUND_WINDOW", "a RANGE bound that is not of the key");
  }
  *out = e->children[1];
  return HF_OK;
}

static hf_status write_bound(writer *w, const write_scope *scope, const tree_window *window, tree_bound bound,
                             const tree_expression *offset) {
  switch (bound) {
    case BOUND_UNBOUNDED_PRECEDING:
      buf_text(write_to(w), "UNBOUNDED PRECEDING");
      return HF_OK;
    case BOUND_UNBOUNDED_FOLLOWING:
      buf_text(write_to(w), "UNBOUNDED FOLLOWING");
      return HF_OK;
    case BOUND_CURRENT_ROWS:
    case BOUND_CURRENT_RANGE:
    case BOUND_CURRENT_GROUPS:
      buf_text(write_to(w), "CURRENT ROW");
      return HF_OK;
    case BOUND_PRECEDING_RANGE:
    case BOUND_FOLLOWING_RANGE:
      HF_TRY(range_offset(w, scope, window, offset, &offset));
      break;
    default:
      break;
  }
  HF_TRY(write_expression(w, scope, offset));
  buf_text(write_to(w), bound <= BOUND_PRECEDING_GROUPS ? " PRECEDING" : " FOLLOWING");
  return HF_OK;
}

static const char *frame_unit(const tree_window *window) {
  char start = bound_units[window->start], end = bound_units[window->end];
  switch (start != '-' ? start : end) {
    case 'O':
      return "ROWS";
    case 'G':
      return "GROUPS";
    case 'A':
      return "RANGE";
    default:
      return window->n_orders == 0 ? "ROWS" : "RANGE";
  }
}

hf_status write_window(writer *w, const write_scope *scope, const tree_expression *e) {
  const tree_window *window = e->window;
  begin_cast(w, e->type);
  HF_TRY(write_window_call(w, scope, e));
  buf_text(write_to(w), " OVER (");
  if (window->n_partitions > 0) {
    buf_text(write_to(w), "PARTITION BY ");
    HF_TRY(write_expressions(w, scope, window->partitions, window->n_partitions, ", "));
    buf_char(write_to(w), ' ');
  }
  if (window->n_orders > 0) {
    buf_text(write_to(w), "ORDER BY ");
    HF_TRY(write_orders(w, scope, window->orders, window->n_orders));
    buf_char(write_to(w), ' ');
  }
  buf_printf(write_to(w), "%s BETWEEN ", frame_unit(window));
  HF_TRY(write_bound(w, scope, window, window->start, window->start_offset));
  buf_text(write_to(w), " AND ");
  HF_TRY(write_bound(w, scope, window, window->end, window->end_offset));
  buf_printf(write_to(w), "%s)", exclude_sql[window->exclude]);
  end_cast(w, e->type);
  return HF_OK;
}
