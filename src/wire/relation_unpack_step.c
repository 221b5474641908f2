/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes → steps: the messages of Spark Connect that are steps, built anew with all
 * the checks of a user's own. See relation_pack_step.c.
 */
#include "plan/lower.h"
#include "wire/wire_internal.h"

#include <string.h>

#define CONNECT(name) Spark__Connect__##name

/* A step that is being decoded. */
typedef struct step_reading {
  wire_unpacker *u;
  build_step step;
  const CONNECT(Relation) * input;
  const CONNECT(Relation) * other;
} step_reading;

/* -------------------------------------------------------------- expressions */

/* a.`odd name` as SQL has it: every part in double quotes. */
static hf_status read_attribute(const wire_unpacker *u, const char *from, const char **out) {
  buf text = {0};
  while (*from != '\0') {
    buf part = {0};
    bool quoted = *from == '`';
    from += quoted;
    for (; *from != '\0' && (quoted ? *from != '`' || from[1] == '`' : *from != '.'); from++) {
      from += quoted && *from == '`';
      buf_char(&part, *from);
    }
    from += quoted && *from == '`';
    buf_text(&text, text.length == 0 ? "" : ".");
    buf_sql_name(&text, buf_cstr(&part));
    buf_reset(&part);
    from += *from == '.';
  }
  *out = text.failed ? NULL : arena_strdup(u->arena, buf_cstr(&text));
  buf_reset(&text);
  return *out == NULL ? wire_unpack_no_memory(u) : HF_OK;
}

static hf_status read_expression(const wire_unpacker *u, const CONNECT(Expression) * from,
                                 build_expression *out);

static hf_status read_alias(const wire_unpacker *u, const CONNECT(Expression__Alias) * from,
                            build_expression *out) {
  if (from->n_name != 1 || from->expr == NULL) {
    return wire_malformed(u, "an alias that is not one name of an expression");
  }
  HF_TRY(read_expression(u, from->expr, out));
  out->name = from->name[0];
  return HF_OK;
}

static hf_status read_expression(const wire_unpacker *u, const CONNECT(Expression) * from,
                                 build_expression *out) {
  if (from != NULL && from->expr_type_case == SPARK__CONNECT__EXPRESSION__EXPR_TYPE_EXPRESSION_STRING &&
      from->expression_string->expression != NULL) {
    *out = (build_expression){.text = from->expression_string->expression};
    return HF_OK;
  }
  if (from != NULL && from->expr_type_case == SPARK__CONNECT__EXPRESSION__EXPR_TYPE_UNRESOLVED_ATTRIBUTE &&
      from->unresolved_attribute->unparsed_identifier != NULL) {
    return read_attribute(u, from->unresolved_attribute->unparsed_identifier, &out->text);
  }
  if (from != NULL && from->expr_type_case == SPARK__CONNECT__EXPRESSION__EXPR_TYPE_ALIAS &&
      from->alias->expr != NULL && from->alias->expr->expr_type_case != from->expr_type_case) {
    return read_alias(u, from->alias, out);
  }
  return wire_malformed(u, "an expression of no kind that is there");
}

static hf_status read_expressions(const wire_unpacker *u, CONNECT(Expression) * *from, size_t n,
                                  const build_expression **out) {
  build_expression *list = arena_array(u->arena, n + 1, sizeof *list);
  if (list == NULL) {
    return wire_unpack_no_memory(u);
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(read_expression(u, from[i], &list[i]));
  }
  *out = list;
  return HF_OK;
}

/* -------------------------------------------------------------------- kinds */

static hf_status read_project(step_reading *r, const CONNECT(Project) * from) {
  r->step.kind = BUILD_PROJECT;
  r->step.n_expressions = from->n_expressions;
  r->input = from->input;
  return read_expressions(r->u, from->expressions, from->n_expressions, &r->step.expressions);
}

static hf_status read_filter(step_reading *r, const CONNECT(Filter) * from) {
  CONNECT(Expression) *condition = from->condition;
  r->step.kind = BUILD_FILTER;
  r->step.n_expressions = 1;
  r->input = from->input;
  return read_expressions(r->u, &condition, 1, &r->step.expressions);
}

static hf_status read_with_columns(step_reading *r, const CONNECT(WithColumns) * from) {
  build_expression *list = arena_array(r->u->arena, from->n_aliases + 1, sizeof *list);
  if (list == NULL) {
    return wire_unpack_no_memory(r->u);
  }
  for (size_t i = 0; i < from->n_aliases; i++) {
    HF_TRY(read_alias(r->u, from->aliases[i], &list[i]));
  }
  r->step.kind = BUILD_WITH_COLUMNS;
  r->step.expressions = list;
  r->step.n_expressions = from->n_aliases;
  r->input = from->input;
  return HF_OK;
}

static hf_status read_rename(step_reading *r, const CONNECT(WithColumnsRenamed) * from) {
  build_expression *list = arena_array(r->u->arena, from->n_renames + 1, sizeof *list);
  if (list == NULL) {
    return wire_unpack_no_memory(r->u);
  }
  for (size_t i = 0; i < from->n_renames; i++) {
    list[i] = (build_expression){from->renames[i]->col_name, from->renames[i]->new_col_name};
  }
  r->step.kind = BUILD_RENAME;
  r->step.expressions = list;
  r->step.n_expressions = from->n_renames;
  r->input = from->input;
  return HF_OK;
}

static hf_status read_drop(step_reading *r, const CONNECT(Drop) * from) {
  build_expression *list = arena_array(r->u->arena, from->n_column_names + 1, sizeof *list);
  if (list == NULL) {
    return wire_unpack_no_memory(r->u);
  }
  for (size_t i = 0; i < from->n_column_names; i++) {
    list[i].text = from->column_names[i];
  }
  r->step.kind = BUILD_DROP;
  r->step.expressions = list;
  r->step.n_expressions = from->n_column_names;
  r->input = from->input;
  return HF_OK;
}

static hf_status read_aggregate(step_reading *r, const CONNECT(Aggregate) * from) {
  if (from->has_group_type && from->group_type != WIRE_GROUP_BY) {
    return error_set(r->u->error, HF_E_UNSUPPORTED, "this kind of grouping is not there: %d",
                     (int)from->group_type);
  }
  r->step.kind = BUILD_AGGREGATE;
  r->step.n_groups = from->n_grouping_expressions;
  r->step.n_expressions = from->n_aggregate_expressions;
  r->input = from->input;
  HF_TRY(read_expressions(r->u, from->grouping_expressions, from->n_grouping_expressions, &r->step.groups));
  return read_expressions(r->u, from->aggregate_expressions, from->n_aggregate_expressions,
                          &r->step.expressions);
}

static hf_status read_sort(step_reading *r, const CONNECT(Sort) * from) {
  static const char *const directions[] = {"", " ASC", " DESC"}, *const nulls[] = {"", " NULLS FIRST",
                                                                                   " NULLS LAST"};
  build_expression *list = arena_array(r->u->arena, from->n_order + 1, sizeof *list);
  if (list == NULL) {
    return wire_unpack_no_memory(r->u);
  }
  for (size_t i = 0; i < from->n_order; i++) {
    const CONNECT(Expression__SortOrder) *key = from->order[i];
    int32_t direction = key->has_direction ? key->direction : 0;
    int32_t order = key->has_null_ordering ? key->null_ordering : 0;
    if (direction < 0 || direction > WIRE_DESCENDING || order < 0 || order > WIRE_NULLS_LAST) {
      return wire_malformed(r->u, "a key that is neither ascending nor descending");
    }
    HF_TRY(read_expression(r->u, key->child, &list[i]));
    list[i].text = arena_printf(r->u->arena, "%s%s%s", list[i].text, directions[direction], nulls[order]);
    if (list[i].text == NULL) {
      return wire_unpack_no_memory(r->u);
    }
  }
  r->step.kind = BUILD_SORT;
  r->step.expressions = list;
  r->step.n_expressions = from->n_order;
  r->input = from->input;
  return HF_OK;
}

static hf_status read_offset(step_reading *r, const CONNECT(Offset) * from) {
  if (from->has_offset && from->offset < 0) {
    return wire_malformed(r->u, "a negative offset");
  }
  r->step.kind = BUILD_LIMIT;
  r->step.offset = from->has_offset ? (uint64_t)from->offset : 0;
  r->input = from->input;
  return HF_OK;
}

static hf_status read_limit(step_reading *r, const CONNECT(Limit) * from) {
  if (from->has_limit && from->limit < 0) {
    return wire_malformed(r->u, "a negative limit");
  }
  r->step.kind = BUILD_LIMIT;
  r->input = from->input;
  if (from->input != NULL && from->input->rel_type_case == SPARK__CONNECT__RELATION__REL_TYPE_OFFSET) {
    HF_TRY(read_offset(r, from->input->offset));
  }
  r->step.has_limit = true;
  r->step.limit = from->has_limit ? (uint64_t)from->limit : 0;
  return HF_OK;
}

static hf_status read_distinct(step_reading *r, const CONNECT(Deduplicate) * from) {
  build_expression *list = arena_array(r->u->arena, from->n_column_names + 1, sizeof *list);
  bool all = from->has_all_columns_as_keys && from->all_columns_as_keys;
  if (list == NULL) {
    return wire_unpack_no_memory(r->u);
  }
  for (size_t i = 0; i < from->n_column_names; i++) {
    buf name = {0};
    buf_sql_name(&name, from->column_names[i]);
    list[i].text = name.failed ? NULL : arena_strdup(r->u->arena, buf_cstr(&name));
    buf_reset(&name);
    if (list[i].text == NULL) {
      return wire_unpack_no_memory(r->u);
    }
  }
  if (all == (from->n_column_names > 0)) {
    return wire_malformed(r->u, "distinct rows by all columns and by some, or by none");
  }
  r->step.kind = BUILD_DISTINCT;
  r->step.expressions = list;
  r->step.n_expressions = from->n_column_names;
  r->input = from->input;
  return HF_OK;
}

static hf_status read_step_alias(step_reading *r, const CONNECT(SubqueryAlias) * from) {
  r->step.kind = BUILD_ALIAS;
  r->step.name = from->alias;
  r->input = from->input;
  return HF_OK;
}

/* The name of a column without its quotes, and without the name of its side. */
static hf_status read_column_name(const wire_unpacker *u, const CONNECT(Expression) * from,
                                  const char **out) {
  const char *at = NULL;
  if (from == NULL || from->expr_type_case != SPARK__CONNECT__EXPRESSION__EXPR_TYPE_UNRESOLVED_ATTRIBUTE ||
      from->unresolved_attribute->unparsed_identifier == NULL) {
    return error_set(u->error, HF_E_UNSUPPORTED, "a repartition by what is no column is not there");
  }
  at = from->unresolved_attribute->unparsed_identifier;
  buf name = {0};
  while (*at != '\0') {
    bool quoted = *at == '`';
    name.length = 0;
    at += quoted;
    for (; *at != '\0' && (quoted ? *at != '`' || at[1] == '`' : *at != '.'); at++) {
      at += quoted && *at == '`';
      buf_char(&name, *at);
    }
    at += quoted && *at == '`';
    at += *at == '.';
  }
  *out = name.failed ? NULL : arena_strndup(u->arena, name.data, name.length);
  buf_reset(&name);
  return *out == NULL ? wire_unpack_no_memory(u) : HF_OK;
}

static hf_status read_repartition(step_reading *r, const CONNECT(RepartitionByExpression) * from) {
  build_expression *list = arena_array(r->u->arena, from->n_partition_exprs + 1, sizeof *list);
  if (list == NULL) {
    return wire_unpack_no_memory(r->u);
  }
  if (!from->has_num_partitions || from->num_partitions < 0) {
    return wire_malformed(r->u, "a repartition without a number of partitions");
  }
  for (size_t i = 0; i < from->n_partition_exprs; i++) {
    HF_TRY(read_column_name(r->u, from->partition_exprs[i], &list[i].text));
  }
  r->step.kind = BUILD_REPARTITION;
  r->step.expressions = list;
  r->step.n_expressions = from->n_partition_exprs;
  r->step.limit = (uint64_t)from->num_partitions;
  r->input = from->input;
  return HF_OK;
}

static hf_status read_join(step_reading *r, const CONNECT(Join) * from) {
  static const join_type types[] = {JOIN_TYPE_INNER, JOIN_TYPE_INNER, JOIN_TYPE_FULL, JOIN_TYPE_LEFT,
                                    JOIN_TYPE_RIGHT, JOIN_TYPE_ANTI,  JOIN_TYPE_SEMI, JOIN_TYPE_CROSS};
  int32_t type = from->has_join_type ? from->join_type : 0;
  if (type < 1 || type >= (int32_t)(sizeof types / sizeof types[0])) {
    return wire_malformed(r->u, "a join of no type");
  }
  r->step.kind = BUILD_JOIN;
  r->step.join = types[type];
  r->step.using_columns = (const char *const *)from->using_columns;
  r->step.n_using = from->n_using_columns;
  r->step.n_expressions = from->join_condition != NULL;
  r->input = from->left;
  r->other = from->right;
  CONNECT(Expression) *condition = from->join_condition;
  return condition == NULL ? HF_OK : read_expressions(r->u, &condition, 1, &r->step.expressions);
}

static hf_status read_set(step_reading *r, const CONNECT(SetOperation) * from) {
  static const set_type types[] = {SET_TYPE_UNION, SET_TYPE_INTERSECT, SET_TYPE_UNION, SET_TYPE_EXCEPT};
  int32_t type = from->has_set_op_type ? from->set_op_type : 0;
  if (type < 1 || type >= (int32_t)(sizeof types / sizeof types[0])) {
    return wire_malformed(r->u, "a set operation of no type");
  }
  r->step.kind = BUILD_SET;
  r->step.set = types[type];
  r->step.all = from->has_is_all && from->is_all;
  r->step.by_name = from->has_by_name && from->by_name;
  r->input = from->left_input;
  r->other = from->right_input;
  if (r->step.by_name && !(from->has_allow_missing_columns && from->allow_missing_columns)) {
    return error_set(r->u->error, HF_E_UNSUPPORTED,
                     "a union by name that forbids missing columns is not there");
  }
  return HF_OK;
}

static hf_status read_kind(step_reading *r, const CONNECT(Relation) * from) {
  switch (from->rel_type_case) {
    case SPARK__CONNECT__RELATION__REL_TYPE_PROJECT:
      return read_project(r, from->project);
    case SPARK__CONNECT__RELATION__REL_TYPE_FILTER:
      return read_filter(r, from->filter);
    case SPARK__CONNECT__RELATION__REL_TYPE_WITH_COLUMNS:
      return read_with_columns(r, from->with_columns);
    case SPARK__CONNECT__RELATION__REL_TYPE_WITH_COLUMNS_RENAMED:
      return read_rename(r, from->with_columns_renamed);
    case SPARK__CONNECT__RELATION__REL_TYPE_DROP:
      return read_drop(r, from->drop);
    case SPARK__CONNECT__RELATION__REL_TYPE_AGGREGATE:
      return read_aggregate(r, from->aggregate);
    case SPARK__CONNECT__RELATION__REL_TYPE_SORT:
      return read_sort(r, from->sort);
    case SPARK__CONNECT__RELATION__REL_TYPE_LIMIT:
      return read_limit(r, from->limit);
    case SPARK__CONNECT__RELATION__REL_TYPE_OFFSET:
      return read_offset(r, from->offset);
    case SPARK__CONNECT__RELATION__REL_TYPE_DEDUPLICATE:
      return read_distinct(r, from->deduplicate);
    case SPARK__CONNECT__RELATION__REL_TYPE_SUBQUERY_ALIAS:
      return read_step_alias(r, from->subquery_alias);
    case SPARK__CONNECT__RELATION__REL_TYPE_REPARTITION_BY_EXPRESSION:
      return read_repartition(r, from->repartition_by_expression);
    case SPARK__CONNECT__RELATION__REL_TYPE_JOIN:
      return read_join(r, from->join);
    case SPARK__CONNECT__RELATION__REL_TYPE_SET_OP:
      return read_set(r, from->set_op);
    default:
      return wire_malformed(r->u, "a relation of no kind");
  }
}

/* -------------------------------------------------------------------- building */

/* Makes sure that the columns of the relation are known. */
static hf_status describe(const wire_unpacker *u, const relation *r) {
  schema columns;
  if (relation_columns(r) != NULL) {
    return HF_OK;
  }
  if (u->names->describe == NULL) {
    return error_set(u->error, HF_E_UNSUPPORTED, "a step is built on what comes without its columns");
  }
  HF_TRY(u->names->describe(u->names->context, r, u->arena, &columns, u->error));
  return relation_is_checked(r) ? relation_remember_columns(r, &columns, u->error)
                                : relation_settle(r, &columns, u->error);
}

static hf_status decode_below(wire_unpacker *u, const CONNECT(Relation) * from, relation **out) {
  if (from == NULL) {
    return wire_malformed(u, "a step without its input");
  }
  HF_TRY(wire_decode(u, from, out));
  return describe(u, *out);
}

hf_status wire_decode_step(wire_unpacker *u, const CONNECT(Relation) * from, relation **out) {
  step_reading r = {.u = u};
  relation *input = NULL, *other = NULL;
  HF_TRY(read_kind(&r, from));
  hf_status status = decode_below(u, r.input, &input);
  if (status == HF_OK && (r.step.kind == BUILD_JOIN || r.step.kind == BUILD_SET)) {
    status = decode_below(u, r.other, &other);
  }
  r.step.input = input;
  r.step.other = other;
  if (status == HF_OK) {
    r.step.columns = relation_columns(input);
    r.step.other_columns = other == NULL ? NULL : relation_columns(other);
    status = plan_build(u->planner, &r.step, u->names, out, u->error);
  }
  relation_release(input);
  relation_release(other);
  return status;
}
