/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of holdfast.h: each is checked, becomes a build_step, and the session
 * makes a relation of it. What an expression means is not looked at here.
 * Thread: any.
 */
#include "api/dataframe.h"

#include "base/utf8.h"

#include <string.h>

/* ------------------------------------------------------------------ arguments */

static hf_status check_text(const char *what, const char *text, hf_error *error) {
  if (text == NULL) {
    argument_is_null(what, error);
    error_hint(error, "the text of a wrong expression is NULL: hf_expr_error says what is wrong with it");
    return HF_E_INVALID_ARGUMENT;
  }
  if (text[0] == '\0') {
    return error_set(error, HF_E_INVALID_ARGUMENT, "an argument is empty: %s", what);
  }
  if (!utf8_is_right(text)) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "an argument is not UTF-8: %s", what);
  }
  return HF_OK;
}

static hf_status check_list(const char *what, hf_list list, hf_error *error) {
  if (list.items == NULL && list.n > 0) {
    return argument_is_null(what, error);
  }
  for (size_t i = 0; i < list.n; i++) {
    hf_status status = check_text(what, list.items[i], error);
    if (status != HF_OK) {
      error_wrap(error, "number %zu", i + 1);
      return status;
    }
  }
  return HF_OK;
}

/* The same of a list that must hold something. */
static hf_status check_filled(const char *what, hf_list list, hf_error *error) {
  HF_TRY(check_list(what, list, error));
  return list.n > 0 ? HF_OK : error_set(error, HF_E_INVALID_ARGUMENT, "a list is empty: %s", what);
}

static hf_status check_frame(const char *what, const hf_df *df, hf_error *error) {
  return df == NULL ? argument_is_null(what, error) : dataframe_check_rows(df, error);
}

static hf_status check_pair(const hf_df *left, const hf_df *right, hf_error *error) {
  HF_TRY(check_frame("left", left, error));
  HF_TRY(check_frame("right", right, error));
  if (left->session != right->session) {
    error_set(error, HF_E_INVALID_ARGUMENT, "the DataFrames are of two sessions: left and right");
    error_hint(error, "make both in one session");
    return HF_E_INVALID_ARGUMENT;
  }
  return HF_OK;
}

/* ----------------------------------------------------------------------- steps */

static hf_status build(const hf_df *df, build_step *step, hf_df **out, hf_error *error) {
  if (out == NULL) {
    return argument_is_null("out", error);
  }
  step->input = df->rows;
  relation *built = NULL;
  HF_TRY(session_build(df->session, step, &built, error));
  return dataframe_new(df->session, built, out, error);
}

/* Expressions of a list of texts, in `a`; NULL for lack of memory. */
static build_expression *expressions_of(hf_list list, arena *a) {
  build_expression *expressions = arena_array(a, list.n + 1, sizeof *expressions);
  for (size_t i = 0; expressions != NULL && i < list.n; i++) {
    expressions[i].text = list.items[i];
  }
  return expressions;
}

/* A step whose expressions are a list that was checked. */
static hf_status build_list(const hf_df *df, build_kind kind, hf_list list, hf_df **out, hf_error *error) {
  arena *a = arena_new();
  build_step step = {.kind = kind, .n_expressions = list.n};
  step.expressions = a == NULL ? NULL : expressions_of(list, a);
  hf_status status = step.expressions == NULL
                         ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the expressions of a step")
                         : build(df, &step, out, error);
  arena_free(a);
  return status;
}

hf_status hf_df_select(hf_df *df, hf_list expressions, hf_df **out, hf_error *error) {
  HF_TRY(check_frame("df", df, error));
  HF_TRY(check_filled("expressions", expressions, error));
  return build_list(df, BUILD_PROJECT, expressions, out, error);
}

hf_status hf_df_filter(hf_df *df, const char *condition, hf_df **out, hf_error *error) {
  HF_TRY(check_frame("df", df, error));
  HF_TRY(check_text("condition", condition, error));
  build_expression expression = {.text = condition};
  build_step step = {.kind = BUILD_FILTER, .expressions = &expression, .n_expressions = 1};
  return build(df, &step, out, error);
}

/* A step of one expression with a name. */
static hf_status build_named(const hf_df *df, build_kind kind, build_expression expression, hf_df **out,
                             hf_error *error) {
  build_step step = {.kind = kind, .expressions = &expression, .n_expressions = 1};
  return build(df, &step, out, error);
}

hf_status hf_df_with_column(hf_df *df, const char *name, const char *expression, hf_df **out,
                            hf_error *error) {
  HF_TRY(check_frame("df", df, error));
  HF_TRY(check_text("name", name, error));
  HF_TRY(check_text("expression", expression, error));
  return build_named(df, BUILD_WITH_COLUMNS, (build_expression){expression, name}, out, error);
}

hf_status hf_df_rename(hf_df *df, const char *old_name, const char *name, hf_df **out, hf_error *error) {
  HF_TRY(check_frame("df", df, error));
  HF_TRY(check_text("old_name", old_name, error));
  HF_TRY(check_text("name", name, error));
  return build_named(df, BUILD_RENAME, (build_expression){old_name, name}, out, error);
}

hf_status hf_df_drop(hf_df *df, hf_list columns, hf_df **out, hf_error *error) {
  HF_TRY(check_frame("df", df, error));
  HF_TRY(check_filled("columns", columns, error));
  return build_list(df, BUILD_DROP, columns, out, error);
}

hf_status hf_df_alias(hf_df *df, const char *name, hf_df **out, hf_error *error) {
  HF_TRY(check_frame("df", df, error));
  HF_TRY(check_text("name", name, error));
  build_step step = {.kind = BUILD_ALIAS, .name = name};
  return build(df, &step, out, error);
}

hf_status hf_df_aggregate(hf_df *df, hf_list groups, hf_list aggregates, hf_df **out, hf_error *error) {
  HF_TRY(check_frame("df", df, error));
  HF_TRY(check_list("groups", groups, error));
  HF_TRY(check_list("aggregates", aggregates, error));
  if (groups.n == 0 && aggregates.n == 0) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "there is neither a group nor an aggregate");
  }
  arena *a = arena_new();
  build_step step = {.kind = BUILD_AGGREGATE, .n_groups = groups.n, .n_expressions = aggregates.n};
  step.groups = a == NULL ? NULL : expressions_of(groups, a);
  step.expressions = a == NULL ? NULL : expressions_of(aggregates, a);
  hf_status status = step.groups == NULL || step.expressions == NULL
                         ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the expressions of a step")
                         : build(df, &step, out, error);
  arena_free(a);
  return status;
}

/* ----------------------------------------------------------------------- joins */

static const join_type JOIN_TYPES[] = {
    [HF_JOIN_INNER] = JOIN_TYPE_INNER, [HF_JOIN_LEFT] = JOIN_TYPE_LEFT, [HF_JOIN_RIGHT] = JOIN_TYPE_RIGHT,
    [HF_JOIN_FULL] = JOIN_TYPE_FULL,   [HF_JOIN_SEMI] = JOIN_TYPE_SEMI, [HF_JOIN_ANTI] = JOIN_TYPE_ANTI,
    [HF_JOIN_CROSS] = JOIN_TYPE_CROSS,
};

static hf_status check_join(const hf_df *left, const hf_df *right, hf_join type, hf_error *error) {
  HF_TRY(check_pair(left, right, error));
  if ((unsigned)type >= sizeof JOIN_TYPES / sizeof JOIN_TYPES[0]) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "there is no such type of join: %d", (int)type);
  }
  return HF_OK;
}

hf_status hf_df_join(hf_df *left, hf_df *right, const char *condition, hf_join type, hf_df **out,
                     hf_error *error) {
  HF_TRY(check_join(left, right, type, error));
  build_expression expression = {.text = condition};
  build_step step = {.kind = BUILD_JOIN, .other = right->rows, .join = JOIN_TYPES[type]};
  if (type != HF_JOIN_CROSS) {
    HF_TRY(check_text("condition", condition, error));
    step.expressions = &expression;
    step.n_expressions = 1;
  } else if (condition != NULL) {
    error_set(error, HF_E_INVALID_ARGUMENT, "a cross join has no condition: %s", condition);
    error_hint(error, "give NULL, or use HF_JOIN_INNER");
    return HF_E_INVALID_ARGUMENT;
  }
  return build(left, &step, out, error);
}

hf_status hf_df_join_using(hf_df *left, hf_df *right, hf_list columns, hf_join type, hf_df **out,
                           hf_error *error) {
  HF_TRY(check_join(left, right, type, error));
  HF_TRY(check_filled("columns", columns, error));
  if (type == HF_JOIN_CROSS) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "a cross join has no columns to join on");
  }
  build_step step = {.kind = BUILD_JOIN,
                     .other = right->rows,
                     .join = JOIN_TYPES[type],
                     .using_columns = columns.items,
                     .n_using = columns.n};
  return build(left, &step, out, error);
}

/* --------------------------------------------------------------- sets and order */

static hf_status build_set(const hf_df *left, const hf_df *right, build_step step, hf_df **out,
                           hf_error *error) {
  HF_TRY(check_pair(left, right, error));
  step.kind = BUILD_SET;
  step.other = right->rows;
  return build(left, &step, out, error);
}

hf_status hf_df_union(hf_df *left, hf_df *right, hf_df **out, hf_error *error) {
  return build_set(left, right, (build_step){.set = SET_TYPE_UNION, .all = true}, out, error);
}

hf_status hf_df_union_by_name(hf_df *left, hf_df *right, hf_df **out, hf_error *error) {
  return build_set(left, right, (build_step){.set = SET_TYPE_UNION, .all = true, .by_name = true}, out,
                   error);
}

hf_status hf_df_intersect(hf_df *left, hf_df *right, bool all, hf_df **out, hf_error *error) {
  return build_set(left, right, (build_step){.set = SET_TYPE_INTERSECT, .all = all}, out, error);
}

hf_status hf_df_except(hf_df *left, hf_df *right, bool all, hf_df **out, hf_error *error) {
  return build_set(left, right, (build_step){.set = SET_TYPE_EXCEPT, .all = all}, out, error);
}

hf_status hf_df_order_by(hf_df *df, hf_list keys, hf_df **out, hf_error *error) {
  HF_TRY(check_frame("df", df, error));
  HF_TRY(check_filled("keys", keys, error));
  return build_list(df, BUILD_SORT, keys, out, error);
}

hf_status hf_df_limit(hf_df *df, uint64_t limit, uint64_t offset, hf_df **out, hf_error *error) {
  HF_TRY(check_frame("df", df, error));
  bool has_limit = limit <= INT64_MAX; /* of more rows nothing has any */
  build_step step = {.kind = BUILD_LIMIT,
                     .has_limit = has_limit,
                     .limit = has_limit ? limit : 0,
                     .offset = offset <= INT64_MAX ? offset : INT64_MAX};
  return build(df, &step, out, error);
}

hf_status hf_df_repartition(hf_df *df, uint32_t partitions, hf_list columns, hf_df **out, hf_error *error) {
  HF_TRY(check_frame("df", df, error));
  HF_TRY(check_filled("columns", columns, error));
  arena *a = arena_new();
  build_expression *names = a == NULL ? NULL : expressions_of(columns, a);
  build_step step = {
      .kind = BUILD_REPARTITION, .expressions = names, .n_expressions = columns.n, .limit = partitions};
  hf_status status = names == NULL
                         ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the columns of a step")
                         : build(df, &step, out, error);
  arena_free(a);
  return status;
}

hf_status hf_df_distinct(hf_df *df, hf_list columns, hf_df **out, hf_error *error) {
  HF_TRY(check_frame("df", df, error));
  HF_TRY(check_list("columns", columns, error));
  arena *a = arena_new();
  const char **texts = a == NULL ? NULL : arena_array(a, columns.n + 1, sizeof *texts);
  bool complete = texts != NULL;
  for (size_t i = 0; complete && i < columns.n; i++) { /* names become the expressions that the step takes */
    buf quoted = {0};
    buf_sql_name(&quoted, columns.items[i]);
    texts[i] = quoted.failed ? NULL : arena_strdup(a, buf_cstr(&quoted));
    complete = texts[i] != NULL;
    buf_reset(&quoted);
  }
  hf_status status = complete ? build_list(df, BUILD_DISTINCT, (hf_list){texts, columns.n}, out, error)
                              : error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the columns of a step");
  arena_free(a);
  return status;
}
