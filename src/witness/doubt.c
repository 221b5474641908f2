/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When an answer is not that of single-node DuckDB: whether it need be. It need not where
 * single-node DuckDB itself gives another, run again or with the sides of its joins
 * changed; where rows that a collation holds equal stand for each other; and where a
 * defect is known (defects.c) without which it gives the same.
 * Thread: one at a time.
 */
#include "parse_json.h"
#include "witness.h"

#include <string.h>

#define JOIN_RULES "join_order,build_side_probe_side"

/* ------------------------------------------------------------- the text as a tree */

static bool is(json *object, const char *key, const char *value) {
  return strcmp(text(object, key), value) == 0;
}

/* Calls it for every object of a tree, from the top; below one for which it returns false it does not go. Depth as of the
 * text, which was bounded. */
static void visit(json *value, bool (*see)(void *context, json *object), void *context) {
  for (size_t i = 0; i < length(value); i++) {
    visit(json_object_array_get_idx(value, i), see, context);
  }
  if (json_object_is_type(value, json_type_object) && see(context, value)) {
    json_object_object_foreach(value, key, child) {
      (void)key;
      visit(child, see, context);
    }
  }
}

/* NULL: it cannot be read. */
static json *tree_of(witness *w, const char *sql, arena *a) {
  const char *parsed = NULL;
  json_tokener *tokener = json_tokener_new_ex(WITNESS_JSON_DEPTH);
  json *root = NULL;
  if (tokener != NULL && engine_parse(witness_engine(w), sql, a, &parsed, NULL) == HF_OK) {
    root = json_tokener_parse_ex(tokener, parsed, -1);
  }
  if (tokener != NULL) {
    json_tokener_free(tokener);
  }
  return root;
}

/* --------------------------------------------------------------------- collations */

typedef struct found {
  bool collates, gathers; /* one of rows that are equal is left: DISTINCT, UNION, GROUP BY … */
  bool has_star, has_join;
} found;

static bool look(void *context, json *object) {
  found *f = context;
  f->collates = f->collates || is(object, "class", "COLLATE");
  f->has_star = f->has_star || is(object, "class", "STAR");
  f->has_join = f->has_join || is(object, "type", "JOIN");
  json *all = get(object, "setop_all");
  f->gathers = f->gathers || is(object, "type", "DISTINCT_MODIFIER") ||
               length(get(object, "group_expressions")) > 0 || (all != NULL && !json_object_get_boolean(all));
  return !is(object, "class", "COMPARISON"); /* has no value that a collation is of */
}

/* ---------------------------------------------------------------------- two runs */

static hf_status set(witness *w, const char *sql) {
  return engine_execute(witness_engine(w), sql, NULL);
}

/* Whether it gives other rows than the text that was written; with the sides of its joins as they stand in it, or as DuckDB
 * has them. */
static bool gives_other(witness *w, const char *sql, const char *other, bool joins_stand) {
  struct ArrowArrayStream first, second;
  compare_report report = {0};
  if (witness_run(w, sql, &first, NULL) != HF_OK) {
    return false;
  }
  hf_status status =
      set(w, joins_stand ? "SET disabled_optimizers = '" JOIN_RULES "'" : "SET disabled_optimizers = ''");
  status = status != HF_OK ? status : witness_run(w, other, &second, NULL);
  hf_status restored = set(w, "SET disabled_optimizers = ''");
  if (status != HF_OK || restored != HF_OK) {
    first.release(&first);
    if (status == HF_OK) {
      second.release(&second);
    }
    return false;
  }
  bool differs = compare_streams(&first, &second, &(compare_options){0}, &report, NULL) == HF_OK &&
                 report.verdict == COMPARE_OTHER_ROWS;
  compare_report_reset(&report);
  return differs;
}

bool witness_varies(witness *w, const char *sql) {
  return gives_other(w, sql, sql, false);
}

/* Its sides in each other's place; which of them come first changes nothing but the order of rows. */
static bool turn_join(void *context, json *object) {
  (void)context;
  bool is_left = is(object, "join_type", "LEFT"), is_right = is(object, "join_type", "RIGHT");
  json *left = get(object, "left"), *right = get(object, "right");
  bool is_plain = is(object, "ref_type", "REGULAR") || is(object, "ref_type", "CROSS");
  if (is(object, "type", "JOIN") && is_plain && left != NULL && right != NULL &&
      (is_left || is_right || is(object, "join_type", "INNER"))) {
    json_object_get(left);
    json_object_get(right);
    json_object_object_add(object, "left", right);
    json_object_object_add(object, "right", left);
    if (is_left || is_right) {
      json_object_object_add(object, "join_type", json_object_new_string(is_left ? "RIGHT" : "LEFT"));
    }
  }
  return true;
}

/* The tree as text again, or NULL. */
static const char *text_of(witness *w, json *root, arena *a) {
  text_table rows = {0};
  buf sql = {0};
  buf_text(&sql, "SELECT json_deserialize_sql(");
  buf_sql_string(&sql, json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN));
  buf_text(&sql, ")");
  bool is_had = !sql.failed &&
                engine_query_text(witness_engine(w), buf_cstr(&sql), a, &rows, NULL) == HF_OK &&
                rows.n_rows == 1;
  buf_reset(&sql);
  return is_had ? rows.cells[0] : NULL;
}

/* -------------------------------------------------------------------------- limits */

/* Takes LIMIT and OFFSET off a query that has no ORDER BY; false: it is none such. */
static bool drop_limit(json *root) {
  json *statements = get(root, "statements");
  json *node = length(statements) == 1 ? get(json_object_array_get_idx(statements, 0), "node") : NULL;
  json *modifiers = get(node, "modifiers");
  bool is_one = length(modifiers) == 1 &&
                strcmp(text(json_object_array_get_idx(modifiers, 0), "type"), "LIMIT_MODIFIER") == 0;
  return is_one && json_object_array_del_idx(modifiers, 0, 1) == 0;
}

/* Whether the other side's rows are among those that a LIMIT takes from, as far as they are compared. */
static bool are_among(witness *w, const witness_case *c, const char *unlimited) {
  struct ArrowArrayStream all, some;
  compare_report report = {0};
  if (witness_run(w, unlimited, &all, NULL) != HF_OK) {
    return false;
  }
  if (c->rows(c->context, &some, NULL) != HF_OK) {
    all.release(&all);
    return false;
  }
  bool are =
      compare_streams(&all, &some, &(compare_options){0}, &report, NULL) == HF_OK &&
      (report.verdict == COMPARE_SAME || (report.verdict == COMPARE_OTHER_ROWS && report.reason != NULL &&
                                          strstr(report.reason, " 0 rows are too many") != NULL));
  compare_report_reset(&report);
  return are;
}

/* With the sides of its joins as they stand, and changed. */
static bool differs_turned(witness *w, const char *sql, json *root, arena *a) {
  visit(root, turn_join, NULL);
  const char *turned = text_of(w, root, a);
  return turned != NULL && (gives_other(w, sql, sql, true) || gives_other(w, sql, turned, true));
}

/* Why it has no one answer, or NULL. */
static const char *why_free(witness *w, const witness_case *c) {
  const char *sql = c->sql;
  const compare_report *other = c->found;
  if (witness_varies(w, sql)) {
    return "two single-node runs differ too";
  }
  arena *a = arena_new();
  json *root = a == NULL ? NULL : tree_of(w, sql, a);
  found f = {0};
  visit(root, look, &f);
  const char *why = NULL;
  bool are_as_many = other->expected_rows == other->actual_rows;
  if (f.has_join && drop_limit(root)) {
    const char *unlimited = are_as_many ? text_of(w, root, a) : NULL;
    bool are_right = unlimited != NULL && are_among(w, c, unlimited);
    why = are_right ? "a LIMIT without an order takes any rows of a join" : NULL;
  } else if (f.has_join && !f.has_star && differs_turned(w, sql, root, a)) {
    why = "single-node DuckDB differs too when it joins the other way round";
  } else if (f.collates && f.gathers && are_as_many) {
    why = "of rows that a collation holds equal one stands for all";
  }
  json_object_put(root);
  arena_free(a);
  return why;
}

/* ------------------------------------------------------------------------ defects */

/* Whether the answers are the same without a defect that is known, whose name *out then is. */
static hf_status find_defect(witness *w, const witness_case *c, const char **out, hf_error *error) {
  struct ArrowArrayStream single, other;
  const char *defect = NULL;
  hf_error met = {0};
  hf_status status = witness_look_again(w, c->sql, c->failed, &defect, &single, &met);
  bool is_met_again = status != HF_OK && c->failed != NULL && met.message != NULL &&
                      c->failed->message != NULL && strcmp(met.message, c->failed->message) == 0;
  hf_error_reset(&met);
  if (is_met_again) {
    *out = defect;
  }
  if (defect == NULL || status != HF_OK) {
    return HF_OK;
  }
  status = c->rows(c->context, &other, error);
  if (status != HF_OK) {
    single.release(&single);
    return status;
  }
  compare_report report = {0};
  status = compare_streams(&single, &other, c->options, &report, error);
  *out = status == HF_OK && report.verdict == COMPARE_SAME ? defect : NULL;
  compare_report_reset(&report);
  return status;
}

hf_status witness_doubt(witness *w, const witness_case *c, witness_verdict *out, hf_error *error) {
  *out = (witness_verdict){WITNESS_IS_RIGHT, ""};
  if (c->failed == NULL && c->found->verdict == COMPARE_OTHER_TYPES) {
    return HF_OK;
  }
  const char *why = c->failed != NULL ? NULL : why_free(w, c);
  if (why != NULL) {
    *out = (witness_verdict){WITNESS_IS_FREE, why};
    return HF_OK;
  }
  HF_TRY(find_defect(w, c, &why, error));
  *out = why == NULL ? *out : (witness_verdict){WITNESS_IS_WRONG, why};
  return HF_OK;
}
