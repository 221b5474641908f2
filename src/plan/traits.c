/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether computing a query again may give other rows: a walk over the optimised
 * plan looks for functions and operators with a row in the tables below. A doubt
 * counts as yes.
 */
#include "plan/lower_internal.h"

#include "base/fault.h"
#include "relation/node.h"

#include <string.h>
#include <strings.h>

/* Functions by name, in whatever role they stand: scalar, aggregate or window. */
static const char *const FUNCTIONS[] = {
    "any_value",
    "approx_quantile",
    "approx_top_k",
    "arbitrary",
    "arg_max",
    "arg_max_null",
    "arg_max_nulls_last",
    "arg_min",
    "arg_min_null",
    "arg_min_nulls_last",
    "argmax",
    "argmin",
    "array_agg",
    "currval",
    "first",
    "gen_random_uuid",
    "group_concat",
    "last",
    "list",
    "listagg",
    "max_by",
    "min_by",
    "mode",
    "nextval",
    "random",
    "reservoir_quantile",
    "setseed",
    "string_agg",
    "uuid",
    "uuidv4",
    "uuidv7",
};

/* Window functions whose value depends on how ties are ordered. */
static const char *const WINDOWS[] = {
    "WINDOW_ROW_NUMBER",  "WINDOW_NTILE",      "WINDOW_LAG",       "WINDOW_LEAD",
    "WINDOW_FIRST_VALUE", "WINDOW_LAST_VALUE", "WINDOW_NTH_VALUE", "WINDOW_FILL",
};

/* Operators, with what a person calls them. */
static const struct {
  const char *type, *shown;
} OPERATORS[] = {
    {"LOGICAL_SAMPLE", "SAMPLE"},
    {"LOGICAL_POSITIONAL_JOIN", "POSITIONAL JOIN"},
    {"LOGICAL_ASOF_JOIN", "ASOF JOIN"},
};

static bool is_among(const char *const *list, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++) {
    if (strcasecmp(list[i], name) == 0) {
      return true;
    }
  }
  return false;
}

/* first(x) over input that has its own order: first(x ORDER BY y) is still open to ties, so it counts. */
static const char *why_expression(struct json_object *node) {
  const char *class = node_text(node, "expression_class");
  const char *name = node_text(node, "name");
  const char *type = node_text(node, "type");
  bool is_call = strcmp(class, "BOUND_FUNCTION") == 0 || strcmp(class, "BOUND_AGGREGATE") == 0 ||
                 strcmp(class, "BOUND_WINDOW") == 0;
  if (is_call && is_among(FUNCTIONS, sizeof FUNCTIONS / sizeof FUNCTIONS[0], name)) {
    return name;
  }
  if (strcmp(class, "BOUND_WINDOW") != 0) {
    return NULL;
  }
  if (is_among(WINDOWS, sizeof WINDOWS / sizeof WINDOWS[0], type)) {
    return type + sizeof "WINDOW_" - 1;
  }
  bool counts_rows =
      strstr(node_text(node, "start"), "ROWS") != NULL || strstr(node_text(node, "end"), "ROWS") != NULL;
  return counts_rows ? "a window frame of ROWS" : NULL;
}

/* Finds an operator through projections: LIMIT over ORDER BY is ordered. */
static bool stands_over_order(struct json_object *node) {
  struct json_object *child = node_at(node, "children", 0);
  while (node_is(child, "type", "LOGICAL_PROJECTION")) {
    child = node_at(child, "children", 0);
  }
  return node_is(child, "type", "LOGICAL_ORDER_BY");
}

static const char *why_operator(struct json_object *node) {
  const char *type = node_text(node, "type");
  if (strcmp(type, "LOGICAL_LIMIT") == 0 && !stands_over_order(node)) {
    return "LIMIT without ORDER BY";
  }
  if (strcmp(type, "LOGICAL_DISTINCT") == 0 && node_is(node, "distinct_type", "DISTINCT_ON") &&
      node_count(node_get(node, "order_by"), "orders") == 0) {
    return "DISTINCT ON without ORDER BY";
  }
  if (strcmp(type, "LOGICAL_GET") == 0 && node_get(node_get(node, "extra_info"), "sample_options") != NULL) {
    return "SAMPLE";
  }
  for (size_t i = 0; i < sizeof OPERATORS / sizeof OPERATORS[0]; i++) {
    if (strcmp(type, OPERATORS[i].type) == 0) {
      return OPERATORS[i].shown;
    }
  }
  return NULL;
}

/*
 * A scalar sub-query is planned as first(x), count(*) without groups, under a CASE that fails for a second row: its
 * first row is its only one.
 */
static bool is_scalar_subquery(struct json_object *aggregate) {
  if (!node_is(aggregate, "type", "LOGICAL_AGGREGATE_AND_GROUP_BY") || node_count(aggregate, "groups") != 0 ||
      node_count(aggregate, "expressions") != 2) {
    return false;
  }
  const char *first = node_text(node_at(aggregate, "expressions", 0), "name");
  const char *second = node_text(node_at(aggregate, "expressions", 1), "name");
  return strcmp(first, "first") == 0 && strncmp(second, "count", 5) == 0;
}

static bool calls_error(struct json_object *value) {
  if (json_object_is_type(value, json_type_array)) {
    for (size_t i = 0; i < json_object_array_length(value); i++) {
      if (calls_error(json_object_array_get_idx(value, i))) {
        return true;
      }
    }
    return false;
  }
  if (!json_object_is_type(value, json_type_object)) {
    return false;
  }
  if (node_is(value, "name", "error")) {
    return true;
  }
  json_object_object_foreach(value, key, member) {
    if (strcmp(key, "children") != 0 && calls_error(member)) {
      return true;
    }
    if (strcmp(key, "children") == 0 && node_get(value, "expression_class") != NULL && calls_error(member)) {
      return true;
    }
  }
  return false;
}

static const char *why(struct json_object *value, bool in_checked_projection);

static const char *why_members(struct json_object *node, bool skips_expressions, bool checks) {
  json_object_object_foreach(node, key, member) {
    const char *found = skips_expressions && strcmp(key, "expressions") == 0 ? NULL : why(member, checks);
    if (found != NULL) {
      return found;
    }
  }
  return NULL;
}

static const char *why(struct json_object *value, bool in_checked_projection) {
  if (json_object_is_type(value, json_type_array)) {
    for (size_t i = 0; i < json_object_array_length(value); i++) {
      const char *found = why(json_object_array_get_idx(value, i), in_checked_projection);
      if (found != NULL) {
        return found;
      }
    }
    return NULL;
  }
  if (!json_object_is_type(value, json_type_object)) {
    return NULL;
  }
  const char *found = why_operator(value);
  found = found == NULL ? why_expression(value) : found;
  if (found != NULL) {
    return found;
  }
  bool skips = in_checked_projection && is_scalar_subquery(value);
  bool checks = node_is(value, "type", "LOGICAL_PROJECTION") && calls_error(node_get(value, "expressions"));
  return why_members(value, skips, checks);
}

/* ---------------------------------------------------------------- collations */

/* The first collation that is named in a value; NULL: none is. */
static const char *find_collation(struct json_object *value) {
  if (json_object_is_type(value, json_type_array)) {
    const char *found = NULL;
    for (size_t i = 0; found == NULL && i < json_object_array_length(value); i++) {
      found = find_collation(json_object_array_get_idx(value, i));
    }
    return found;
  }
  if (!json_object_is_type(value, json_type_object)) {
    return NULL;
  }
  const char *name = node_text(value, "collation");
  if (name[0] != '\0' && !FAULT("plan.collation")) {
    return name;
  }
  json_object_object_foreach(value, key, member) {
    (void)key;
    const char *found = find_collation(member);
    if (found != NULL) {
      return found;
    }
  }
  return NULL;
}

/* A function that gives text hands the collation of its arguments on; its own type in the plan does not tell. */
static const char *collation_of_expression(struct json_object *expression) {
  struct json_object *type = node_get(expression, "return_type");
  const char *found = find_collation(type);
  bool hands_on = node_is(expression, "expression_class", "BOUND_FUNCTION") && node_is(type, "id", "VARCHAR");
  for (size_t i = 0; hands_on && found == NULL && i < node_count(expression, "children"); i++) {
    found = collation_of_expression(node_at(expression, "children", i));
  }
  return found;
}

/* Those of an operator's own list of expressions: of their results, not of what they are computed from. */
static const char *collation_of_list(struct json_object *node, const char *list) {
  const char *found = NULL;
  for (size_t i = 0; found == NULL && i < node_count(node, list); i++) {
    found = collation_of_expression(node_at(node, list, i));
  }
  return found;
}

/* Operators that pass the columns of their inputs on. What is not here nor makes columns of its own is searched whole. */
static const char *const PASSING[] = {
    "LOGICAL_ORDER_BY",         "LOGICAL_TOP_N",           "LOGICAL_LIMIT", "LOGICAL_FILTER",
    "LOGICAL_DISTINCT",         "LOGICAL_COMPARISON_JOIN", "LOGICAL_UNION", "LOGICAL_CROSS_PRODUCT",
    "LOGICAL_MATERIALIZED_CTE", "LOGICAL_WINDOW",
};

/* A collation of a column that an operator gives. */
static const char *collation_of(struct json_object *node) {
  if (node_is(node, "type", "LOGICAL_PROJECTION")) {
    return collation_of_list(node, "expressions");
  }
  if (node_is(node, "type", "LOGICAL_AGGREGATE_AND_GROUP_BY")) {
    const char *found = collation_of_list(node, "groups");
    return found == NULL ? collation_of_list(node, "expressions") : found;
  }
  if (!is_among(PASSING, sizeof PASSING / sizeof PASSING[0], node_text(node, "type"))) {
    return find_collation(node);
  }
  const char *found = node_is(node, "type", "LOGICAL_WINDOW") ? collation_of_list(node, "expressions") : NULL;
  for (size_t i = 0; found == NULL && i < node_count(node, "children"); i++) {
    found = collation_of(node_at(node, "children", i));
  }
  return found;
}

/* -------------------------------------------------------------------- traits */

static hf_status set_why(plan_traits *out, const char *reason, arena *a, hf_error *error) {
  const char *copy = reason == NULL ? "" : arena_strdup(a, reason);
  if (copy == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the traits of a plan");
  }
  *out = (plan_traits){.indeterminate = reason != NULL, .why = copy, .collation = ""};
  return HF_OK;
}

static hf_status set_traits(plan_traits *out, const char *doubt, struct json_object *tree, arena *a,
                            hf_error *error) {
  HF_TRY(set_why(out, doubt == NULL ? why(tree, false) : doubt, a, error));
  const char *collation = collation_of(node_at(tree, "plans", 0));
  out->collation = collation == NULL ? "" : arena_strdup(a, collation);
  return out->collation == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the traits of a plan")
                                : HF_OK;
}

/* What makes a query indeterminate without a look at its plan; NULL: nothing. */
static const char *doubt_of(const lowered *l) {
  for (size_t i = 0; i < l->n_inputs; i++) {
    if (l->inputs[i].indeterminate) {
      return "a held result that is indeterminate";
    }
  }
  return l->clock;
}

hf_status plan_traits_of(engine *planner, const lowered *l, arena *a, plan_traits *out, hf_error *error) {
  const char *sql = NULL, *json = NULL, *reason = NULL;
  engine_scan *scans = NULL;
  HF_TRY(plan_text_for_planner(l, a, &sql, &scans, error));
  engine_set_scans(planner, scans, l->n_inputs);
  hf_status status = engine_plan_json(planner, sql, a, &json, &reason, error);
  engine_set_scans(planner, NULL, 0);
  HF_TRY(status);
  struct json_object *tree = NULL;
  if (json == NULL || node_parse(json, &tree, NULL) != HF_OK) {
    return set_why(out, "a plan that DuckDB cannot write down", a, error);
  }
  status = set_traits(out, doubt_of(l), tree, a, error);
  json_object_put(tree);
  return status;
}
