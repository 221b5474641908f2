/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of at most one child as SELECTs, but GET (write_get.c). */
#include "sql/write_internal.h"

static write_source source_of(writer *w, const tree_node *node) {
  return (write_source){node->children[0], 0, write_name(w)};
}

static write_scope alias_scope(size_t alias) {
  return (write_scope){.kind = SCOPE_ALIAS, .alias = alias};
}

static hf_status write_from_child(writer *w, const write_source *child) {
  buf_text(write_to(w), " FROM ");
  return write_from(w, child);
}

/* "e AS c3, …": expressions as the columns from `first` on. */
static hf_status write_outputs(writer *w, const write_scope *scope, const tree_expression *const *list,
                               size_t n, size_t first) {
  for (size_t i = 0; i < n; i++) {
    buf_text(write_to(w), first + i > 0 ? ", " : "");
    HF_TRY(write_expression(w, scope, list[i]));
    buf_printf(write_to(w), " AS c%zu", first + i);
  }
  return HF_OK;
}

/* ------------------------------------------------------------------ leaves */

static hf_status write_dummy(writer *w, const tree_node *node) {
  (void)node;
  buf_text(write_to(w), "SELECT CAST('0' AS INTEGER) AS c0");
  return HF_OK;
}

static hf_status write_empty(writer *w, const tree_node *node) {
  write_select(w, node);
  for (size_t i = 0; i < node->n_columns; i++) {
    tree_value null = {.type = node->types[i], .is_null = true};
    buf_text(write_to(w), i > 0 ? ", " : "");
    HF_TRY(write_value(w, &null));
    buf_printf(write_to(w), " AS c%zu", i);
  }
  buf_text(write_to(w), " WHERE false");
  return HF_OK;
}

static hf_status write_cell(writer *w, const write_scope *scope, const tree_expression *e,
                            const data_type *type) {
  bool is_cast = write_can_name(type);
  buf_text(write_to(w), is_cast ? "CAST(" : "");
  HF_TRY(write_expression(w, scope, e));
  if (is_cast) {
    buf_text(write_to(w), " AS ");
    write_type(w, type);
    buf_char(write_to(w), ')');
  }
  return HF_OK;
}

/* A list of rows keeps their order, which a UNION ALL of SELECTs does not. */
static hf_status write_rows(writer *w, const tree_node *node) {
  static const write_scope none = {.kind = SCOPE_NONE};
  size_t alias = write_name(w), n = node->n_columns;
  buf_text(write_to(w), "SELECT ");
  write_columns(w, alias, NULL, n, 0);
  buf_text(write_to(w), " FROM (VALUES ");
  for (size_t i = 0; i < node->n_expressions; i++) {
    buf_text(write_to(w), i % n > 0 ? ", " : i > 0 ? "), (" : "(");
    HF_TRY(write_cell(w, &none, node->expressions[i], node->types[i % n]));
  }
  buf_printf(write_to(w), ")) t%zu(", alias);
  for (size_t i = 0; i < n; i++) {
    buf_printf(write_to(w), "%sc%zu", i > 0 ? ", " : "", i);
  }
  buf_char(write_to(w), ')');
  return HF_OK;
}

/* Rows over a child's columns: each row of the child gives each of them. */
static hf_status write_rows_over_child(writer *w, const tree_node *node) {
  size_t entry = 0, n = node->n_columns;
  HF_TRY(write_entry(w, node->children[0], true, &entry));
  for (size_t row = 0; row * n < node->n_expressions; row++) {
    write_source child = {node->children[0], entry, write_name(w)};
    write_scope scope = alias_scope(child.alias);
    buf_text(write_to(w), row > 0 ? " UNION ALL SELECT " : "SELECT ");
    for (size_t i = 0; i < n; i++) {
      buf_text(write_to(w), i > 0 ? ", " : "");
      HF_TRY(write_cell(w, &scope, node->expressions[row * n + i], node->types[i]));
      buf_printf(write_to(w), " AS c%zu", i);
    }
    HF_TRY(write_from_child(w, &child));
  }
  return HF_OK;
}

static hf_status write_values(writer *w, const tree_node *node) {
  if (node->n_columns == 0) {
    return write_refuse(w, TREE_REFUSED_SHAPE, tree_kind_name(node->kind), "rows without columns");
  }
  bool has_child = node->n_children > 0 && node->children[0]->kind != TREE_DUMMY;
  return has_child ? write_rows_over_child(w, node) : write_rows(w, node);
}

/* --------------------------------------------------------- row by row */

static hf_status write_filter(writer *w, const tree_node *node) {
  write_source child = source_of(w, node);
  write_scope scope = alias_scope(child.alias);
  write_select(w, node);
  write_columns(w, child.alias, node->n_map > 0 ? node->map : NULL, node->n_columns, 0);
  HF_TRY(write_from_child(w, &child));
  buf_text(write_to(w), node->n_expressions > 0 ? " WHERE " : "");
  return write_expressions(w, &scope, node->expressions, node->n_expressions, " AND ");
}

static hf_status write_projection(writer *w, const tree_node *node) {
  write_source child = source_of(w, node);
  write_scope scope = alias_scope(child.alias);
  write_select(w, node);
  HF_TRY(write_outputs(w, &scope, node->expressions, node->n_expressions, 0));
  return write_from_child(w, &child);
}

/* WINDOW and UNNEST: the child's columns, then the expressions. */
static hf_status write_behind_child(writer *w, const tree_node *node) {
  write_source child = source_of(w, node);
  write_scope scope = alias_scope(child.alias);
  size_t n = node->children[0]->n_columns;
  write_select(w, node);
  write_columns(w, child.alias, NULL, n, 0);
  HF_TRY(write_outputs(w, &scope, node->expressions, node->n_expressions, n));
  return write_from_child(w, &child);
}

/* -------------------------------------------------------------- aggregates */

/* The text of a group key behind the alias: a column, or a key that an inner SELECT names. */
typedef struct group_names {
  const tree_aggregate *aggregate;
  size_t alias;
  bool are_columns;
} group_names;

static void write_group(writer *w, const group_names *names, size_t group) {
  if (names->are_columns) {
    buf_printf(write_to(w), "t%zu.c%zu", names->alias, names->aggregate->groups[group]->ref);
  } else {
    buf_printf(write_to(w), "t%zu.k%zu", names->alias, group);
  }
}

static void write_group_list(writer *w, const group_names *names, const size_t *groups, size_t n) {
  for (size_t i = 0; i < n; i++) {
    buf_text(write_to(w), i > 0 ? ", " : "");
    write_group(w, names, groups == NULL ? i : groups[i]);
  }
}

static void write_group_by(writer *w, const group_names *names) {
  const tree_aggregate *g = names->aggregate;
  if (g->n_groups == 0 && g->n_sets == 0) {
    return;
  }
  if (g->n_sets == 0) {
    buf_text(write_to(w), " GROUP BY ");
    write_group_list(w, names, NULL, g->n_groups);
    return;
  }
  if (g->n_sets == 1 && g->sets[0].n == g->n_groups && g->n_groups > 0) {
    buf_text(write_to(w), " GROUP BY ");
    write_group_list(w, names, g->sets[0].groups, g->sets[0].n);
    return;
  }
  buf_text(write_to(w), " GROUP BY GROUPING SETS (");
  for (size_t i = 0; i < g->n_sets; i++) {
    buf_text(write_to(w), i > 0 ? ", (" : "(");
    write_group_list(w, names, g->sets[i].groups, g->sets[i].n);
    buf_char(write_to(w), ')');
  }
  buf_char(write_to(w), ')');
}

/* Keys that are distinct columns can stand in GROUP BY; others need names: a constant there would be a position. */
static bool are_distinct_columns(const tree_aggregate *g) {
  for (size_t i = 0; i < g->n_groups; i++) {
    if (g->groups[i]->kind != EXPRESSION_REF) {
      return false;
    }
    for (size_t k = 0; k < i; k++) {
      if (g->groups[k]->ref == g->groups[i]->ref) {
        return false;
      }
    }
  }
  return true;
}

static hf_status write_aggregate_source(writer *w, const write_source *child, const group_names *names) {
  const tree_aggregate *g = names->aggregate;
  if (names->are_columns) {
    return write_from_child(w, child);
  }
  write_source inner = {child->node, child->entry, write_name(w)};
  write_scope scope = alias_scope(inner.alias);
  buf_text(write_to(w), " FROM (SELECT ");
  for (size_t i = 0; i < g->n_groups; i++) {
    HF_TRY(write_expression(w, &scope, g->groups[i]));
    buf_printf(write_to(w), " AS k%zu, ", i);
  }
  buf_printf(write_to(w), "t%zu.*", inner.alias);
  HF_TRY(write_from_child(w, &inner));
  buf_printf(write_to(w), ") t%zu", child->alias);
  return HF_OK;
}

static hf_status write_aggregation(writer *w, const tree_node *node) {
  const tree_aggregate *g = node->aggregate;
  write_source child = source_of(w, node);
  write_scope scope = alias_scope(child.alias);
  group_names names = {g, child.alias, are_distinct_columns(g)};
  buf_text(write_to(w), node->n_columns == 0 ? "SELECT count(*) AS c0" : "SELECT ");
  for (size_t i = 0; i < g->n_groups; i++) {
    buf_text(write_to(w), i > 0 ? ", " : "");
    write_group(w, &names, i);
    buf_printf(write_to(w), " AS c%zu", i);
  }
  HF_TRY(write_outputs(w, &scope, node->expressions, node->n_expressions, g->n_groups));
  for (size_t i = 0; i < g->n_grouping; i++) {
    size_t at = g->n_groups + node->n_expressions + i;
    buf_printf(write_to(w), "%sCAST(grouping(", at > 0 ? ", " : "");
    write_group_list(w, &names, g->grouping[i].groups, g->grouping[i].n);
    buf_printf(write_to(w), ") AS BIGINT) AS c%zu", at);
  }
  HF_TRY(write_aggregate_source(w, &child, &names));
  write_group_by(w, &names);
  return HF_OK;
}

/* -------------------------------------------------------- order and limits */

static bool is_plain_distinct(const tree_node *node) {
  if (node->n_orders > 0) {
    return false;
  }
  for (size_t i = 0; i < node->n_columns; i++) {
    bool found = false;
    for (size_t k = 0; k < node->n_expressions && !found; k++) {
      found = node->expressions[k]->kind == EXPRESSION_REF && node->expressions[k]->ref == i;
    }
    if (!found) {
      return false;
    }
  }
  return true;
}

/* DISTINCT on other targets than all columns keeps one row of each: plain DISTINCT would be wrong, silently. */
static hf_status write_distinct(writer *w, const tree_node *node) {
  write_source child = source_of(w, node);
  write_scope scope = alias_scope(child.alias);
  buf_text(write_to(w), "SELECT DISTINCT ");
  if (!is_plain_distinct(node)) {
    buf_text(write_to(w), "ON (");
    HF_TRY(write_expressions(w, &scope, node->expressions, node->n_expressions, ", "));
    buf_text(write_to(w), ") ");
  }
  buf_text(write_to(w), node->n_columns == 0 ? "1 AS c0" : "");
  write_columns(w, child.alias, NULL, node->n_columns, 0);
  HF_TRY(write_from_child(w, &child));
  buf_text(write_to(w), node->n_orders > 0 ? " ORDER BY " : "");
  return write_orders(w, &scope, node->orders, node->n_orders);
}

static hf_status write_order(writer *w, const tree_node *node) {
  write_source child = source_of(w, node);
  write_scope scope = alias_scope(child.alias);
  write_select(w, node);
  write_columns(w, child.alias, node->n_map > 0 ? node->map : NULL, node->n_columns, 0);
  HF_TRY(write_from_child(w, &child));
  buf_text(write_to(w), " ORDER BY ");
  return write_orders(w, &scope, node->orders, node->n_orders);
}

static void write_bounds(writer *w, const tree_limit *limit) {
  if (limit->has_limit && limit->limit_is_percent) {
    buf_printf(write_to(w), " LIMIT %.17g%%", limit->percent);
  } else if (limit->has_limit && limit->limit_expression == NULL) {
    buf_printf(write_to(w), " LIMIT %llu", (unsigned long long)limit->limit);
  }
  if (limit->offset > 0 && limit->offset_expression == NULL) {
    buf_printf(write_to(w), " OFFSET %llu", (unsigned long long)limit->offset);
  }
}

static hf_status write_top_n(writer *w, const tree_node *node) {
  HF_TRY(write_order(w, node));
  write_bounds(w, node->limit);
  return HF_OK;
}

/* " LIMIT (SELECT e FROM w1 t2 LIMIT 1)": the same value stands in each row. */
static hf_status write_bound_query(writer *w, const char *word, const tree_expression *e,
                                   const write_source *child) {
  write_source again = {child->node, child->entry, write_name(w)};
  write_scope scope = alias_scope(again.alias);
  if (e == NULL) {
    return HF_OK;
  }
  buf_printf(write_to(w), " %s (SELECT ", word);
  HF_TRY(write_expression(w, &scope, e));
  HF_TRY(write_from_child(w, &again));
  buf_text(write_to(w), " LIMIT 1)");
  return HF_OK;
}

static hf_status write_limit(writer *w, const tree_node *node) {
  write_source child = source_of(w, node);
  const tree_limit *limit = node->limit;
  if (limit->limit_expression != NULL || limit->offset_expression != NULL) {
    HF_TRY(write_entry(w, node->children[0], true, &child.entry));
  }
  write_select(w, node);
  write_columns(w, child.alias, NULL, node->n_columns, 0);
  HF_TRY(write_from_child(w, &child));
  HF_TRY(write_bound_query(w, "LIMIT", limit->limit_expression, &child));
  write_bounds(w, limit);
  return write_bound_query(w, "OFFSET", limit->offset_expression, &child);
}

static hf_status write_sample(writer *w, const tree_node *node) {
  static const char *const methods[] = {"system", "bernoulli", "reservoir"};
  write_source child = source_of(w, node);
  const tree_sample *sample = node->sample;
  write_select(w, node);
  write_columns(w, child.alias, NULL, node->n_columns, 0);
  HF_TRY(write_from_child(w, &child));
  if (sample->is_percent) {
    buf_printf(write_to(w), " USING SAMPLE %.17g%%", sample->percent);
  } else {
    buf_printf(write_to(w), " USING SAMPLE %llu ROWS", (unsigned long long)sample->rows);
  }
  buf_printf(write_to(w), " (%s", methods[sample->method]);
  if (sample->has_seed) {
    buf_printf(write_to(w), ", %llu", (unsigned long long)sample->seed);
  }
  buf_char(write_to(w), ')');
  return HF_OK;
}

hf_status write_operator(writer *w, const tree_node *node) {
  switch (node->kind) {
    case TREE_DUMMY:
      return write_dummy(w, node);
    case TREE_EMPTY:
      return write_empty(w, node);
    case TREE_VALUES:
      return write_values(w, node);
    case TREE_FILTER:
      return write_filter(w, node);
    case TREE_PROJECTION:
      return write_projection(w, node);
    case TREE_AGGREGATE:
      return write_aggregation(w, node);
    case TREE_WINDOW:
    case TREE_UNNEST:
      return write_behind_child(w, node);
    case TREE_DISTINCT:
      return write_distinct(w, node);
    case TREE_ORDER:
      return write_order(w, node);
    case TREE_TOP_N:
      return write_top_n(w, node);
    case TREE_LIMIT:
      return write_limit(w, node);
    case TREE_SAMPLE:
      return write_sample(w, node);
    default:
      return write_refuse(w, TREE_REFUSED_OPERATOR, tree_kind_name(node->kind), "not written here");
  }
}
