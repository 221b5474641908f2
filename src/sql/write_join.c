/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins as SELECTs. MARK and SINGLE have no join syntax: the first is EXISTS,
 * ANY or a CASE with the rules of NULL, the second a LEFT JOIN where the right
 * side is provably unique on the keys, else one that checks.
 */
#include "sql/write_internal.h"

#include "base/fault.h"
#include "base/mem.h"

#include <string.h>

/* A join and its two sides as they stand in FROM. */
typedef struct joining {
  const tree_node *node;
  const tree_join *join;
  write_source left, right;
} joining;

static write_scope alias_scope(size_t alias) {
  return (write_scope){.kind = SCOPE_ALIAS, .alias = alias};
}

/* ------------------------------------------------------- proof of uniqueness */

/* Columns as a set of bits, in memory of the arena. */
static bool *new_set(writer *w, size_t n) {
  return arena_array(w->a, n, sizeof(bool));
}

static bool is_unique(writer *w, const tree_node *node, const bool *keys);

/* The right columns that equality binds. */
static bool is_right_unique(writer *w, const tree_node *right, const tree_join *j) {
  bool *keys = new_set(w, right->n_columns);
  for (size_t i = 0; keys != NULL && i < j->n_conditions; i++) {
    const tree_condition *c = &j->conditions[i];
    bool is_equal = c->comparison == COMPARE_EQUAL || c->comparison == COMPARE_NOT_DISTINCT_FROM;
    if (is_equal && c->right->kind == EXPRESSION_REF) {
      keys[c->right->ref] = true;
    }
  }
  return keys != NULL && is_unique(w, right, keys);
}

static bool is_projection_unique(writer *w, const tree_node *node, const bool *keys) {
  bool *below = new_set(w, node->children[0]->n_columns);
  for (size_t i = 0; below != NULL && i < node->n_columns; i++) {
    if (keys[i] && node->expressions[i]->kind == EXPRESSION_REF) {
      below[node->expressions[i]->ref] = true;
    }
  }
  return below != NULL && is_unique(w, node->children[0], below);
}

static bool is_filter_unique(writer *w, const tree_node *node, const bool *keys) {
  bool *below = new_set(w, node->children[0]->n_columns);
  for (size_t i = 0; below != NULL && i < node->n_columns; i++) {
    below[node->n_map > 0 ? node->map[i] : i] |= keys[i];
  }
  return below != NULL && is_unique(w, node->children[0], below);
}

static bool is_aggregate_unique(const tree_node *node, const bool *keys) {
  const tree_aggregate *g = node->aggregate;
  bool has_one_set = g->n_sets == 0 || (g->n_sets == 1 && g->sets[0].n == g->n_groups);
  for (size_t i = 0; i < g->n_groups; i++) {
    has_one_set &= keys[i];
  }
  return has_one_set;
}

/* Each row of the left side matches at most one of the right. */
static bool is_join_unique(writer *w, const tree_node *node, const bool *keys) {
  const tree_join *j = node->join;
  bool *left = new_set(w, node->children[0]->n_columns);
  if (left == NULL || (j->type != JOIN_INNER && j->type != JOIN_LEFT)) {
    return false;
  }
  for (size_t i = 0; i < j->n_left; i++) {
    left[j->left[i]] |= keys[i];
  }
  return is_unique(w, node->children[0], left) && is_right_unique(w, node->children[1], j);
}

/* Proves that at most one row has any given values in `keys`; false when there is no proof. */
static bool is_unique(writer *w, const tree_node *node, const bool *keys) {
  switch (node->kind) {
    case TREE_PROJECTION:
      return is_projection_unique(w, node, keys);
    case TREE_FILTER:
      return is_filter_unique(w, node, keys);
    case TREE_AGGREGATE:
      return is_aggregate_unique(node, keys);
    case TREE_DELIM_GET:
      for (size_t i = 0; i < node->n_columns; i++) {
        if (!keys[i]) {
          return false;
        }
      }
      return true;
    case TREE_DUMMY:
      return true;
    case TREE_JOIN:
      return is_join_unique(w, node, keys);
    default:
      return false;
  }
}

/* --------------------------------------------------------------- conditions */

static hf_status write_condition(writer *w, const joining *x, size_t i) {
  const tree_condition *c = &x->join->conditions[i];
  write_scope left = alias_scope(x->left.alias), right = alias_scope(x->right.alias);
  HF_TRY(write_expression(w, &left, c->left));
  buf_printf(write_to(w), " %s ", tree_comparison_sql(c->comparison));
  return write_expression(w, &right, c->right);
}

/* The first `n` conditions, and the one over both sides. */
static hf_status write_conditions(writer *w, const joining *x, size_t n) {
  for (size_t i = 0; i < n; i++) {
    buf_text(write_to(w), i > 0 ? " AND " : "");
    HF_TRY(write_condition(w, x, i));
  }
  if (x->join->condition == NULL) {
    return HF_OK;
  }
  write_scope both = {
      .kind = SCOPE_JOIN, .alias = x->left.alias, .right_alias = x->right.alias, .join = x->join};
  buf_text(write_to(w), n > 0 ? " AND (" : "");
  HF_TRY(write_expression(w, &both, x->join->condition));
  buf_text(write_to(w), n > 0 ? ")" : "");
  return HF_OK;
}

static hf_status write_on(writer *w, const joining *x) {
  buf_text(write_to(w), " ON ");
  return write_conditions(w, x, x->join->n_conditions);
}

/* ------------------------------------------------------------- plain joins */

static hf_status write_asof_sides(writer *w, const joining *x, const char *word) {
  buf_text(write_to(w), " FROM ");
  HF_TRY(write_asof_left(w, x->join, &x->left));
  buf_printf(write_to(w), " ASOF %s JOIN ", word);
  HF_TRY(write_asof_right(w, x->join, &x->right));
  HF_TRY(write_on(w, x));
  return write_asof_guard(w, x->join, x->left.alias, x->right.alias);
}

static hf_status write_sides(writer *w, const joining *x, const char *word) {
  if (x->node->kind == TREE_ASOF_JOIN) {
    return write_asof_sides(w, x, word);
  }
  buf_text(write_to(w), " FROM ");
  HF_TRY(write_from(w, &x->left));
  buf_printf(write_to(w), " %s JOIN ", word);
  HF_TRY(write_from(w, &x->right));
  return write_on(w, x);
}

static hf_status write_plain(writer *w, const joining *x) {
  const tree_join *j = x->join;
  write_select(w, x->node);
  write_columns(w, x->left.alias, j->left, j->n_left, 0);
  write_columns(w, x->right.alias, j->right, j->n_right, j->n_left);
  return write_sides(w, x, tree_join_type_name(j->type));
}

static hf_status write_semi(writer *w, const joining *x) {
  write_select(w, x->node);
  write_columns(w, x->left.alias, x->join->left, x->join->n_left, 0);
  tree_join_type type = x->join->type == JOIN_SEMI && FAULT("sql.semi_rows") ? JOIN_INNER : x->join->type;
  return write_sides(w, x, tree_join_type_name(type));
}

/* RIGHT_SEMI and RIGHT_ANTI: SQL has them with the sides exchanged only. */
static hf_status write_right_semi(writer *w, const joining *x) {
  write_select(w, x->node);
  write_columns(w, x->right.alias, x->join->right, x->join->n_right, 0);
  buf_text(write_to(w), " FROM ");
  HF_TRY(write_from(w, &x->right));
  buf_text(write_to(w), x->join->type == JOIN_RIGHT_SEMI ? " SEMI JOIN " : " ANTI JOIN ");
  HF_TRY(write_from(w, &x->left));
  return write_on(w, x);
}

/* -------------------------------------------------------------------- MARK */

static hf_status write_exists(writer *w, const joining *x) {
  buf_text(write_to(w), "EXISTS (SELECT 1 FROM ");
  HF_TRY(write_from(w, &x->right));
  buf_text(write_to(w), " WHERE ");
  HF_TRY(write_conditions(w, x, x->join->n_conditions));
  buf_char(write_to(w), ')');
  return HF_OK;
}

/* (x op ANY (SELECT y FROM right WHERE correlated conditions)): the last condition is the comparison. */
static hf_status write_any(writer *w, const joining *x) {
  size_t last = x->join->n_conditions - 1;
  const tree_condition *c = &x->join->conditions[last];
  write_scope left = alias_scope(x->left.alias), right = alias_scope(x->right.alias);
  buf_char(write_to(w), '(');
  HF_TRY(write_expression(w, &left, c->left));
  buf_printf(write_to(w), " %s ANY (SELECT ", tree_comparison_sql(c->comparison));
  HF_TRY(write_expression(w, &right, c->right));
  buf_text(write_to(w), " FROM ");
  HF_TRY(write_from(w, &x->right));
  buf_text(write_to(w), last > 0 ? " WHERE " : "");
  HF_TRY(write_conditions(w, x, last));
  buf_text(write_to(w), "))");
  return HF_OK;
}

static hf_status write_null_tests(writer *w, const joining *x, bool of_left) {
  write_scope scope = alias_scope(of_left ? x->left.alias : x->right.alias);
  for (size_t i = 0; i < x->join->n_conditions; i++) {
    const tree_condition *c = &x->join->conditions[i];
    buf_text(write_to(w), i > 0 ? " OR " : "");
    HF_TRY(write_expression(w, &scope, of_left ? c->left : c->right));
    buf_text(write_to(w), " IS NULL");
  }
  return HF_OK;
}

/* (a, b) IN (…) as DuckDB's mark join decides it: a NULL in any key, on either side, makes no match unknown. */
static hf_status write_tuple_mark(writer *w, joining *x) {
  for (size_t i = 0; i < x->join->n_conditions; i++) {
    HF_TRY(write_check_repeatable(w, x->join->conditions[i].left));
    HF_TRY(write_check_repeatable(w, x->join->conditions[i].right));
  }
  if (x->right.entry == 0) {
    HF_TRY(write_entry(w, x->right.node, true, &x->right.entry));
  }
  buf_text(write_to(w), "CASE WHEN ");
  HF_TRY(write_exists(w, x));
  buf_text(write_to(w), " THEN true WHEN NOT EXISTS (SELECT 1 FROM ");
  HF_TRY(write_from(w, &x->right));
  buf_text(write_to(w), ") THEN false WHEN ");
  HF_TRY(write_null_tests(w, x, true));
  buf_text(write_to(w), " OR EXISTS (SELECT 1 FROM ");
  HF_TRY(write_from(w, &x->right));
  buf_text(write_to(w), " WHERE ");
  HF_TRY(write_null_tests(w, x, false));
  buf_text(write_to(w), ") THEN CAST(NULL AS BOOLEAN) ELSE false END");
  return HF_OK;
}

static bool are_all_equal(const tree_join *j) {
  for (size_t i = 0; i < j->n_conditions; i++) {
    if (j->conditions[i].comparison != COMPARE_EQUAL) {
      return false;
    }
  }
  return true;
}

/* Of the conditions, `n_mark_types` are correlated ones, which come first. */
static hf_status write_mark_value(writer *w, joining *x) {
  const tree_join *j = x->join;
  size_t n = j->n_conditions, correlated = j->n_mark_types;
  tree_comparison last = j->conditions[n - 1].comparison;
  if (correlated > 0 && n == correlated) {
    return write_exists(w, x);
  }
  if (correlated == 0 && n > 1 && are_all_equal(j)) {
    return write_tuple_mark(w, x);
  }
  if (n != correlated + 1 && n != 1) {
    return write_refuse(w, TREE_REFUSED_SHAPE, "LOGICAL_COMPARISON_JOIN",
                        "MARK of %zu conditions, %zu correlated", n, correlated);
  }
  bool is_exists = last == COMPARE_NOT_DISTINCT_FROM || last == COMPARE_DISTINCT_FROM;
  return is_exists ? write_exists(w, x) : write_any(w, x);
}

static hf_status write_mark(writer *w, joining *x) {
  buf_text(write_to(w), "SELECT ");
  write_columns(w, x->left.alias, x->join->left, x->join->n_left, 0);
  buf_text(write_to(w), x->join->n_left > 0 ? ", " : "");
  HF_TRY(write_mark_value(w, x));
  buf_printf(write_to(w), " AS c%zu FROM ", x->join->n_left);
  return write_from(w, &x->left);
}

/* ------------------------------------------------------------------ SINGLE */

static hf_status write_single_left(writer *w, const joining *x) {
  write_select(w, x->node);
  write_columns(w, x->left.alias, x->join->left, x->join->n_left, 0);
  write_columns(w, x->right.alias, x->join->right, x->join->n_right, x->join->n_left);
  return write_sides(w, x, "LEFT");
}

static void write_checked(writer *w, const joining *x, size_t group, size_t i) {
  const data_type *type = x->node->types[x->join->n_left + i];
  bool is_cast = write_can_name(type);
  buf *out = write_to(w);
  buf_printf(out, "%sCASE WHEN t%zu.n > 1 THEN ", is_cast ? "CAST(" : "(", group);
  buf_text(out, "error('more than one row returned by a subquery used as an expression')");
  buf_printf(out, " ELSE t%zu.c%zu END", group, x->join->right[i]);
  if (is_cast) {
    buf_text(out, " AS ");
    write_type(w, type);
  }
  buf_char(out, ')');
}

/* The right side by key, its first row and the count of its rows. */
static hf_status write_grouped_right(writer *w, const joining *x) {
  write_scope right = alias_scope(x->right.alias);
  buf_text(write_to(w), "(SELECT ");
  for (size_t i = 0; i < x->join->n_conditions; i++) {
    HF_TRY(write_expression(w, &right, x->join->conditions[i].right));
    buf_printf(write_to(w), " AS k%zu, ", i);
  }
  for (size_t i = 0; i < x->right.node->n_columns; i++) {
    buf_printf(write_to(w), "first(t%zu.c%zu) AS c%zu, ", x->right.alias, i, i);
  }
  buf_text(write_to(w), "count(*) AS n FROM ");
  HF_TRY(write_from(w, &x->right));
  buf_text(write_to(w), " GROUP BY ALL)");
  return HF_OK;
}

/* A matched key that has several rows raises, as the subquery would. */
static hf_status write_single_checked(writer *w, const joining *x) {
  const tree_join *j = x->join;
  size_t group = write_name(w);
  write_scope left = alias_scope(x->left.alias);
  write_select(w, x->node);
  write_columns(w, x->left.alias, j->left, j->n_left, 0);
  for (size_t i = 0; i < j->n_right; i++) {
    buf_text(write_to(w), j->n_left + i > 0 ? ", " : "");
    write_checked(w, x, group, i);
    buf_printf(write_to(w), " AS c%zu", j->n_left + i);
  }
  buf_text(write_to(w), " FROM ");
  HF_TRY(write_from(w, &x->left));
  buf_text(write_to(w), " LEFT JOIN ");
  HF_TRY(write_grouped_right(w, x));
  buf_printf(write_to(w), " t%zu ON ", group);
  for (size_t i = 0; i < j->n_conditions; i++) {
    buf_text(write_to(w), i > 0 ? " AND " : "");
    HF_TRY(write_expression(w, &left, j->conditions[i].left));
    buf_printf(write_to(w), " %s t%zu.k%zu", tree_comparison_sql(j->conditions[i].comparison), group, i);
  }
  return HF_OK;
}

/* Other conditions: a scalar subquery of a struct of the columns, so that DuckDB itself raises. */
static hf_status write_single_subquery(writer *w, const joining *x) {
  const tree_join *j = x->join;
  size_t outer = write_name(w);
  write_select(w, x->node);
  write_columns(w, outer, j->left, j->n_left, 0);
  for (size_t i = 0; i < j->n_right; i++) {
    buf_printf(write_to(w), "%st%zu.s.c%zu AS c%zu", j->n_left + i > 0 ? ", " : "", outer, i, j->n_left + i);
  }
  buf_printf(write_to(w), " FROM (SELECT t%zu.*, (SELECT struct_pack(", x->left.alias);
  for (size_t i = 0; i < j->n_right; i++) {
    buf_printf(write_to(w), "%sc%zu := t%zu.c%zu", i > 0 ? ", " : "", i, x->right.alias, j->right[i]);
  }
  buf_text(write_to(w), ") FROM ");
  HF_TRY(write_from(w, &x->right));
  buf_text(write_to(w), " WHERE ");
  HF_TRY(write_conditions(w, x, j->n_conditions));
  buf_text(write_to(w), ") AS s FROM ");
  HF_TRY(write_from(w, &x->left));
  buf_printf(write_to(w), ") t%zu", outer);
  return HF_OK;
}

static hf_status write_single(writer *w, const joining *x) {
  bool is_keyed = true;
  for (size_t i = 0; i < x->join->n_conditions; i++) {
    tree_comparison c = x->join->conditions[i].comparison;
    is_keyed &= c == COMPARE_EQUAL || c == COMPARE_NOT_DISTINCT_FROM;
  }
  if (is_right_unique(w, x->right.node, x->join)) {
    return write_single_left(w, x);
  }
  if (w->options->first_of_many) {
    return write_refuse(w, TREE_REFUSED_SHAPE, "LOGICAL_COMPARISON_JOIN",
                        "SINGLE that may give any of several rows");
  }
  if (is_keyed) {
    return write_single_checked(w, x);
  }
  return x->join->n_right > 0
             ? write_single_subquery(w, x)
             : write_refuse(w, TREE_REFUSED_SHAPE, "LOGICAL_COMPARISON_JOIN", "SINGLE without columns");
}

/* -------------------------------------------------------------------- door */

static hf_status write_joining(writer *w, joining *x) {
  bool is_asof = x->node->kind == TREE_ASOF_JOIN;
  switch (x->join->type) {
    case JOIN_INNER:
    case JOIN_LEFT:
    case JOIN_RIGHT:
    case JOIN_FULL:
      return write_plain(w, x);
    case JOIN_SEMI:
    case JOIN_ANTI:
      return write_semi(w, x);
    default:
      break;
  }
  if (is_asof) {
    return write_refuse(w, TREE_REFUSED_SHAPE, "LOGICAL_ASOF_JOIN", "join type %s",
                        tree_join_type_name(x->join->type));
  }
  switch (x->join->type) {
    case JOIN_MARK:
      return write_mark(w, x);
    case JOIN_SINGLE:
      return write_single(w, x);
    default:
      return write_right_semi(w, x);
  }
}

static joining joining_of(writer *w, const tree_node *node) {
  write_source left = {node->children[0], 0, write_name(w)};
  write_source right = {node->children[1], 0, write_name(w)};
  return (joining){node, node->join, left, right};
}

hf_status write_join(writer *w, const tree_node *node) {
  joining x = joining_of(w, node);
  return write_joining(w, &x);
}

hf_status write_any_join(writer *w, const tree_node *node) {
  return write_join(w, node);
}

/* The distinct keys of an entry's rows, as an entry. */
static hf_status write_keys(writer *w, const tree_node *node, size_t rows, size_t *keys) {
  const tree_join *j = node->join;
  sql_text text, *before = NULL;
  size_t alias = write_name(w);
  write_scope scope = alias_scope(alias);
  hf_status status = HF_OK;
  write_entry_begin(w, &text, &before);
  buf_text(write_to(w), "SELECT DISTINCT ");
  for (size_t i = 0; status == HF_OK && i < j->n_keys; i++) {
    buf_text(write_to(w), i > 0 ? ", " : "");
    status = write_expression(w, &scope, j->keys[i]);
    buf_printf(write_to(w), " AS c%zu", i);
  }
  buf_printf(write_to(w), "%s FROM w%zu t%zu", j->n_keys == 0 ? "1 AS c0" : "", rows, alias);
  if (status != HF_OK) {
    w->out = before;
    buf_reset(&text.text);
    return status;
  }
  *keys = write_name(w);
  return write_entry_end(w, &text, before, " AS MATERIALIZED", *keys);
}

/* Two entries: the rows of the duplicate-eliminated side, and their distinct keys, which DELIM_GETs read. */
hf_status write_delim_join(writer *w, const tree_node *node) {
  joining x = joining_of(w, node);
  write_source *rows = node->join->delim_side == 0 ? &x.left : &x.right;
  write_source *other = node->join->delim_side == 0 ? &x.right : &x.left;
  size_t keys = 0, outer = w->delim_entry;
  HF_TRY(write_entry(w, rows->node, true, &rows->entry));
  HF_TRY(write_keys(w, node, rows->entry, &keys));
  w->delim_entry = keys;
  /* a MARK may read its right side several times */
  HF_TRY(write_entry(w, other->node, node->join->type == JOIN_MARK, &other->entry));
  w->delim_entry = outer;
  return write_joining(w, &x);
}

hf_status write_product(writer *w, const tree_node *node) {
  write_source left = {node->children[0], 0, write_name(w)};
  write_source right = {node->children[1], 0, write_name(w)};
  write_select(w, node);
  write_columns(w, left.alias, NULL, left.node->n_columns, 0);
  write_columns(w, right.alias, NULL, right.node->n_columns, left.node->n_columns);
  buf_text(write_to(w), " FROM ");
  HF_TRY(write_from(w, &left));
  buf_text(write_to(w), node->kind == TREE_CROSS_PRODUCT ? " CROSS JOIN " : " POSITIONAL JOIN ");
  return write_from(w, &right);
}
