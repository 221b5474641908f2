/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps → bytes: each is the message of Spark Connect that means the same, with
 * its expressions as SQL text. What a step's text names goes along as
 * WithRelations; what a step is built on carries its columns (Described), so
 * that whoever decodes need not look for them. Decoding: relation_unpack_step.c.
 */
#include "wire/wire_internal.h"

#include <string.h>
#include <strings.h>

#define CONNECT(name) Spark__Connect__##name

/* protobuf-c's structs are not const; it reads them only. */
static char *text_of(const char *text) {
  return (char *)text;
}

static void *allocate(wire_packer *p, size_t bytes) {
  return arena_alloc(p->arena, bytes);
}

/* -------------------------------------------------------------- expressions */

/* Text of a buffer, in the arena; NULL for lack of memory. */
static char *take_text(wire_packer *p, buf *text) {
  char *copy = text->failed ? NULL : arena_strndup(p->arena, buf_cstr(text), text->length);
  buf_reset(text);
  return copy;
}

static hf_status encode_text(wire_packer *p, char *text, CONNECT(Expression) * *out) {
  CONNECT(Expression) *e = allocate(p, sizeof *e);
  CONNECT(Expression__ExpressionString) *string = allocate(p, sizeof *string);
  if (e == NULL || string == NULL || text == NULL) {
    return wire_pack_no_memory(p);
  }
  spark__connect__expression__init(e);
  spark__connect__expression__expression_string__init(string);
  string->expression = text;
  e->expr_type_case = SPARK__CONNECT__EXPRESSION__EXPR_TYPE_EXPRESSION_STRING;
  e->expression_string = string;
  *out = e;
  return HF_OK;
}

static void put_part(buf *out, const char *name) {
  buf_char(out, '`');
  for (; *name != '\0'; name++) {
    buf_text(out, *name == '`' ? "``" : (char[]){*name, '\0'});
  }
  buf_char(out, '`');
}

/* A column that a star stood for, by its name, which must be the only one. */
static hf_status encode_column(wire_packer *p, const step_side *side, size_t number,
                               CONNECT(Expression) * *out) {
  const char *label = step_label(side, number), *name = side->columns->columns[number].name;
  CONNECT(Expression) *e = allocate(p, sizeof *e);
  CONNECT(Expression__UnresolvedAttribute) *attribute = allocate(p, sizeof *attribute);
  if (e == NULL || attribute == NULL) {
    return wire_pack_no_memory(p);
  }
  if (strcmp(step_inside_name(side, number), name) != 0 && label == NULL) {
    return error_set(p->error, HF_E_UNSUPPORTED, "a star over columns of the same name cannot be sent: %s",
                     name);
  }
  buf text = {0};
  if (label != NULL) {
    put_part(&text, label);
    buf_char(&text, '.');
  }
  put_part(&text, name);
  spark__connect__expression__init(e);
  spark__connect__expression__unresolved_attribute__init(attribute);
  attribute->unparsed_identifier = take_text(p, &text);
  e->expr_type_case = SPARK__CONNECT__EXPRESSION__EXPR_TYPE_UNRESOLVED_ATTRIBUTE;
  e->unresolved_attribute = attribute;
  *out = e;
  return attribute->unparsed_identifier == NULL ? wire_pack_no_memory(p) : HF_OK;
}

static hf_status encode_bare(wire_packer *p, const relation_step *step, const step_expression *from,
                             CONNECT(Expression) * *out) {
  if (from->text == NULL) {
    return encode_column(p, &step->in, from->refs[0].column, out);
  }
  char *text = NULL;
  wire_part part = {from->text, from->begin, from->end, from->spots, from->n_spots};
  HF_TRY(wire_text(p, &part, &text));
  return encode_text(p, text, out);
}

static hf_status encode_alias(wire_packer *p, const relation_step *step, const step_expression *from,
                              CONNECT(Expression__Alias) * *out) {
  CONNECT(Expression__Alias) *alias = allocate(p, sizeof *alias);
  char **names = allocate(p, sizeof *names);
  if (alias == NULL || names == NULL) {
    return wire_pack_no_memory(p);
  }
  spark__connect__expression__alias__init(alias);
  names[0] = text_of(from->name);
  alias->name = names;
  alias->n_name = 1;
  *out = alias;
  return encode_bare(p, step, from, &alias->expr);
}

/* With its name, where it has one. */
static hf_status encode_named(wire_packer *p, const relation_step *step, const step_expression *from,
                              CONNECT(Expression) * *out) {
  if (from->name == NULL || from->name[0] == '\0' || (from->shape & STEP_STAR) != 0) {
    return encode_bare(p, step, from, out);
  }
  CONNECT(Expression) *e = allocate(p, sizeof *e);
  if (e == NULL) {
    return wire_pack_no_memory(p);
  }
  spark__connect__expression__init(e);
  e->expr_type_case = SPARK__CONNECT__EXPRESSION__EXPR_TYPE_ALIAS;
  *out = e;
  return encode_alias(p, step, from, &e->alias);
}

typedef struct expression_list {
  CONNECT(Expression) * *items;
  size_t n;
} expression_list;

static hf_status encode_list(wire_packer *p, const relation_step *step, const step_expression *list, size_t n,
                             expression_list *out) {
  out->items = arena_array(p->arena, n + 1, sizeof(void *));
  out->n = n;
  if (out->items == NULL) {
    return wire_pack_no_memory(p);
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(encode_named(p, step, &list[i], &out->items[i]));
  }
  return HF_OK;
}

/* -------------------------------------------------------------------- kinds */

typedef struct step_message {
  wire_packer *p;
  const relation *r;
  const relation_step *step;
  CONNECT(Relation) * to;
  CONNECT(Relation) * input;
} step_message;

/* Room for the message of a kind; the relation is of that kind then. NULL: no memory. */
static void *make(const step_message *m, size_t bytes, CONNECT(Relation__RelTypeCase) kind) {
  m->to->rel_type_case = kind;
  return allocate(m->p, bytes);
}

static hf_status encode_project(const step_message *m) {
  expression_list list;
  CONNECT(Project) *project = make(m, sizeof *project, SPARK__CONNECT__RELATION__REL_TYPE_PROJECT);
  if (project == NULL) {
    return wire_pack_no_memory(m->p);
  }
  spark__connect__project__init(project);
  m->to->project = project;
  HF_TRY(encode_list(m->p, m->step, m->step->expressions, m->step->n_expressions, &list));
  project->input = m->input;
  project->expressions = list.items;
  project->n_expressions = list.n;
  return HF_OK;
}

static hf_status encode_filter(const step_message *m) {
  CONNECT(Filter) *filter = make(m, sizeof *filter, SPARK__CONNECT__RELATION__REL_TYPE_FILTER);
  if (filter == NULL) {
    return wire_pack_no_memory(m->p);
  }
  spark__connect__filter__init(filter);
  m->to->filter = filter;
  filter->input = m->input;
  return encode_bare(m->p, m->step, &m->step->expressions[0], &filter->condition);
}

static hf_status encode_with_columns(const step_message *m) {
  CONNECT(WithColumns) *with_columns =
      make(m, sizeof *with_columns, SPARK__CONNECT__RELATION__REL_TYPE_WITH_COLUMNS);
  if (with_columns == NULL) {
    return wire_pack_no_memory(m->p);
  }
  spark__connect__with_columns__init(with_columns);
  m->to->with_columns = with_columns;
  size_t n = m->step->n_expressions;
  with_columns->input = m->input;
  with_columns->aliases = arena_array(m->p->arena, n + 1, sizeof(void *));
  with_columns->n_aliases = n;
  if (with_columns->aliases == NULL) {
    return wire_pack_no_memory(m->p);
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(encode_alias(m->p, m->step, &m->step->expressions[i], &with_columns->aliases[i]));
  }
  return HF_OK;
}

static hf_status encode_rename(const step_message *m) {
  const step_side *in = &m->step->in, *out = &m->step->out;
  size_t n = in->columns->n_columns;
  CONNECT(WithColumnsRenamed) *with_columns_renamed =
      make(m, sizeof *with_columns_renamed, SPARK__CONNECT__RELATION__REL_TYPE_WITH_COLUMNS_RENAMED);
  if (with_columns_renamed == NULL) {
    return wire_pack_no_memory(m->p);
  }
  spark__connect__with_columns_renamed__init(with_columns_renamed);
  m->to->with_columns_renamed = with_columns_renamed;
  CONNECT(WithColumnsRenamed__Rename) *renames = arena_array(m->p->arena, n + 1, sizeof *renames);
  with_columns_renamed->renames = arena_array(m->p->arena, n + 1, sizeof(void *));
  if (renames == NULL || with_columns_renamed->renames == NULL) {
    return wire_pack_no_memory(m->p);
  }
  with_columns_renamed->input = m->input;
  for (size_t i = 0; i < n; i++) {
    if (strcmp(in->columns->columns[i].name, out->columns->columns[i].name) == 0) {
      continue;
    }
    spark__connect__with_columns_renamed__rename__init(&renames[i]);
    renames[i].col_name = text_of(in->columns->columns[i].name);
    renames[i].new_col_name = text_of(out->columns->columns[i].name);
    with_columns_renamed->renames[with_columns_renamed->n_renames++] = &renames[i];
  }
  return HF_OK;
}

static hf_status encode_drop(const step_message *m) {
  const schema *in = m->step->in.columns;
  CONNECT(Drop) *drop = make(m, sizeof *drop, SPARK__CONNECT__RELATION__REL_TYPE_DROP);
  if (drop == NULL) {
    return wire_pack_no_memory(m->p);
  }
  spark__connect__drop__init(drop);
  m->to->drop = drop;
  drop->input = m->input;
  drop->column_names = arena_array(m->p->arena, in->n_columns + 1, sizeof(char *));
  if (drop->column_names == NULL) {
    return wire_pack_no_memory(m->p);
  }
  for (size_t i = 0, kept = 0; i < in->n_columns; i++) {
    if (kept < m->step->n_kept && m->step->kept[kept] == i) {
      kept++;
    } else {
      drop->column_names[drop->n_column_names++] = text_of(in->columns[i].name);
    }
  }
  return HF_OK;
}

static hf_status encode_aggregate(const step_message *m) {
  expression_list groups, list;
  CONNECT(Aggregate) *aggregate = make(m, sizeof *aggregate, SPARK__CONNECT__RELATION__REL_TYPE_AGGREGATE);
  if (aggregate == NULL) {
    return wire_pack_no_memory(m->p);
  }
  spark__connect__aggregate__init(aggregate);
  m->to->aggregate = aggregate;
  HF_TRY(encode_list(m->p, m->step, m->step->groups, m->step->n_groups, &groups));
  HF_TRY(encode_list(m->p, m->step, m->step->expressions, m->step->n_expressions, &list));
  aggregate->input = m->input;
  aggregate->has_group_type = 1;
  aggregate->group_type = WIRE_GROUP_BY;
  aggregate->grouping_expressions = groups.items;
  aggregate->n_grouping_expressions = groups.n;
  aggregate->aggregate_expressions = list.items;
  aggregate->n_aggregate_expressions = list.n;
  return HF_OK;
}

static hf_status encode_key(wire_packer *p, const relation_step *step, const step_expression *from,
                            CONNECT(Expression__SortOrder) * *out) {
  CONNECT(Expression__SortOrder) *key = allocate(p, sizeof *key);
  if (key == NULL) {
    return wire_pack_no_memory(p);
  }
  spark__connect__expression__sort_order__init(key);
  bool is_ascending = strstr(from->order, "ASC") != NULL, is_first = strstr(from->order, "FIRST") != NULL;
  key->has_direction = is_ascending || strstr(from->order, "DESC") != NULL;
  key->direction = is_ascending ? WIRE_ASCENDING : WIRE_DESCENDING;
  key->has_null_ordering = is_first || strstr(from->order, "LAST") != NULL;
  key->null_ordering = is_first ? WIRE_NULLS_FIRST : WIRE_NULLS_LAST;
  *out = key;
  return encode_bare(p, step, from, &key->child);
}

static hf_status encode_sort(const step_message *m) {
  size_t n = m->step->n_expressions;
  CONNECT(Sort) *sort = make(m, sizeof *sort, SPARK__CONNECT__RELATION__REL_TYPE_SORT);
  if (sort == NULL) {
    return wire_pack_no_memory(m->p);
  }
  spark__connect__sort__init(sort);
  m->to->sort = sort;
  sort->input = m->input;
  sort->order = arena_array(m->p->arena, n + 1, sizeof(void *));
  sort->n_order = n;
  sort->has_is_global = 1;
  sort->is_global = 1;
  if (sort->order == NULL) {
    return wire_pack_no_memory(m->p);
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(encode_key(m->p, m->step, &m->step->expressions[i], &sort->order[i]));
  }
  return HF_OK;
}

static hf_status encode_offset(const step_message *m) {
  CONNECT(Offset) *offset = make(m, sizeof *offset, SPARK__CONNECT__RELATION__REL_TYPE_OFFSET);
  if (offset == NULL) {
    return wire_pack_no_memory(m->p);
  }
  spark__connect__offset__init(offset);
  m->to->offset = offset;
  offset->input = m->input;
  offset->has_offset = 1;
  offset->offset = (int64_t)m->step->offset;
  return HF_OK;
}

/* With both: Limit over Offset. */
static hf_status encode_limit(const step_message *m) {
  if (!m->step->has_limit) {
    return encode_offset(m);
  }
  step_message below = *m;
  if (m->step->offset > 0) {
    below.to = allocate(m->p, sizeof *below.to);
    if (below.to == NULL) {
      return wire_pack_no_memory(m->p);
    }
    spark__connect__relation__init(below.to);
    HF_TRY(encode_offset(&below));
  }
  CONNECT(Limit) *limit = make(m, sizeof *limit, SPARK__CONNECT__RELATION__REL_TYPE_LIMIT);
  if (limit == NULL) {
    return wire_pack_no_memory(m->p);
  }
  spark__connect__limit__init(limit);
  m->to->limit = limit;
  limit->input = m->step->offset > 0 ? below.to : m->input;
  limit->has_limit = 1;
  limit->limit = (int64_t)m->step->limit;
  return HF_OK;
}

static hf_status encode_distinct(const step_message *m) {
  size_t n = m->step->n_expressions;
  CONNECT(Deduplicate) *deduplicate =
      make(m, sizeof *deduplicate, SPARK__CONNECT__RELATION__REL_TYPE_DEDUPLICATE);
  if (deduplicate == NULL) {
    return wire_pack_no_memory(m->p);
  }
  spark__connect__deduplicate__init(deduplicate);
  m->to->deduplicate = deduplicate;
  deduplicate->input = m->input;
  deduplicate->has_all_columns_as_keys = n == 0;
  deduplicate->all_columns_as_keys = n == 0;
  deduplicate->column_names = arena_array(m->p->arena, n + 1, sizeof(char *));
  if (deduplicate->column_names == NULL) {
    return wire_pack_no_memory(m->p);
  }
  for (size_t i = 0; i < n; i++) {
    const step_expression *e = &m->step->expressions[i];
    if ((e->shape & STEP_COLUMN) == 0) {
      return error_set(m->p->error, HF_E_UNSUPPORTED, "distinct rows by an expression cannot be sent: %s",
                       e->text + e->begin);
    }
    deduplicate->column_names[deduplicate->n_column_names++] = text_of(e->name);
  }
  return HF_OK;
}

static hf_status encode_step_alias(const step_message *m) {
  CONNECT(SubqueryAlias) *subquery_alias =
      make(m, sizeof *subquery_alias, SPARK__CONNECT__RELATION__REL_TYPE_SUBQUERY_ALIAS);
  if (subquery_alias == NULL) {
    return wire_pack_no_memory(m->p);
  }
  spark__connect__subquery_alias__init(subquery_alias);
  m->to->subquery_alias = subquery_alias;
  subquery_alias->input = m->input;
  subquery_alias->alias = text_of(m->step->name);
  return HF_OK;
}

static hf_status encode_repartition(const step_message *m) {
  const relation_step *step = m->step;
  CONNECT(RepartitionByExpression) *repartition_by_expression = make(
      m, sizeof *repartition_by_expression, SPARK__CONNECT__RELATION__REL_TYPE_REPARTITION_BY_EXPRESSION);
  if (repartition_by_expression == NULL) {
    return wire_pack_no_memory(m->p);
  }
  spark__connect__repartition_by_expression__init(repartition_by_expression);
  m->to->repartition_by_expression = repartition_by_expression;
  repartition_by_expression->input = m->input;
  repartition_by_expression->has_num_partitions = 1;
  repartition_by_expression->num_partitions = (int32_t)step->limit;
  repartition_by_expression->partition_exprs = arena_array(m->p->arena, step->n_kept + 1, sizeof(void *));
  repartition_by_expression->n_partition_exprs = step->n_kept;
  if (repartition_by_expression->partition_exprs == NULL) {
    return wire_pack_no_memory(m->p);
  }
  for (size_t i = 0; i < step->n_kept; i++) {
    HF_TRY(encode_column(m->p, &step->in, step->kept[i], &repartition_by_expression->partition_exprs[i]));
  }
  return HF_OK;
}

static hf_status encode_join(const step_message *m) {
  static const int32_t types[] = {
      [JOIN_TYPE_INNER] = 1, [JOIN_TYPE_FULL] = 2, [JOIN_TYPE_LEFT] = 3,  [JOIN_TYPE_RIGHT] = 4,
      [JOIN_TYPE_ANTI] = 5,  [JOIN_TYPE_SEMI] = 6, [JOIN_TYPE_CROSS] = 7,
  };
  const relation_step *step = m->step;
  CONNECT(Join) *join = make(m, sizeof *join, SPARK__CONNECT__RELATION__REL_TYPE_JOIN);
  if (join == NULL) {
    return wire_pack_no_memory(m->p);
  }
  spark__connect__join__init(join);
  m->to->join = join;
  join->left = m->input;
  join->has_join_type = 1;
  join->join_type = types[step->join];
  join->using_columns = arena_array(m->p->arena, step->n_using + 1, sizeof(char *));
  join->n_using_columns = step->n_using;
  if (join->using_columns == NULL) {
    return wire_pack_no_memory(m->p);
  }
  for (size_t i = 0; i < step->n_using; i++) {
    join->using_columns[i] = text_of(step->in.columns->columns[step->using_columns[i]].name);
  }
  HF_TRY(step->n_expressions == 0 ? HF_OK
                                  : encode_bare(m->p, step, step->expressions, &join->join_condition));
  return wire_encode_below(m->p, m->r->view.other, &step->other, &join->right);
}

static hf_status encode_set(const step_message *m) {
  static const int32_t types[] = {[SET_TYPE_INTERSECT] = 1, [SET_TYPE_UNION] = 2, [SET_TYPE_EXCEPT] = 3};
  CONNECT(SetOperation) *set_op = make(m, sizeof *set_op, SPARK__CONNECT__RELATION__REL_TYPE_SET_OP);
  if (set_op == NULL) {
    return wire_pack_no_memory(m->p);
  }
  spark__connect__set_operation__init(set_op);
  m->to->set_op = set_op;
  set_op->left_input = m->input;
  set_op->has_set_op_type = set_op->has_is_all = set_op->has_by_name = set_op->has_allow_missing_columns = 1;
  set_op->set_op_type = types[m->step->set];
  set_op->is_all = m->step->all;
  set_op->by_name = set_op->allow_missing_columns = m->step->by_name;
  return wire_encode_below(m->p, m->r->view.other, &m->step->other, &set_op->right_input);
}

hf_status wire_encode_step(wire_packer *p, const relation *r, CONNECT(Relation) * to) {
  static hf_status (*const kinds[])(const step_message *) = {
      [BUILD_PROJECT] = encode_project,
      [BUILD_FILTER] = encode_filter,
      [BUILD_WITH_COLUMNS] = encode_with_columns,
      [BUILD_RENAME] = encode_rename,
      [BUILD_DROP] = encode_drop,
      [BUILD_AGGREGATE] = encode_aggregate,
      [BUILD_JOIN] = encode_join,
      [BUILD_SORT] = encode_sort,
      [BUILD_LIMIT] = encode_limit,
      [BUILD_SET] = encode_set,
      [BUILD_DISTINCT] = encode_distinct,
      [BUILD_ALIAS] = encode_step_alias,
      [BUILD_REPARTITION] = encode_repartition,
  };
  step_message m = {.p = p, .r = r, .step = r->view.step, .to = to};
  HF_TRY(wire_encode_below(p, r->view.input, &m.step->in, &m.input));
  return kinds[m.step->kind](&m);
}
