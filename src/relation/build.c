/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps over relations: what each kind takes, and which columns it gives. The
 * expressions are read in build_expression.c and bound in build_bind.c; the
 * columns of what is below are given, so that nothing below is looked at.
 * Thread: one with a planning stack.
 */
#include "relation/build_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

hf_status build_out_of_memory(const step_maker *m) {
  return error_set(m->error, HF_E_OUT_OF_MEMORY, "no memory to build a relation");
}

hf_status build_invalid(const step_maker *m, const char *what, const char *value) {
  return error_set(m->error, HF_E_INVALID_ARGUMENT, "%s: %.200s", what, value);
}

/* -------------------------------------------------------------- expressions */

static hf_status read_list(const step_maker *m, const build_expression *given, size_t n,
                           step_expression **out) {
  bool is_key = m->step->kind == BUILD_SORT;
  step_expression *list = arena_array(m->arena, n + 1, sizeof *list);
  if (list == NULL) {
    return build_out_of_memory(m);
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(build_expression_read(m, &given[i], is_key, &list[i]));
    m->step->is_deferred = m->step->is_deferred || list[i].n_spots > 0;
  }
  *out = list;
  return HF_OK;
}

/* A number as a key is a position to DuckDB. */
static hf_status check_keys(const step_maker *m, const step_expression *keys, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if ((keys[i].shape & (STEP_CONSTANT | STEP_STAR)) != 0) {
      return build_invalid(m, "a key must name a column, found a constant or a star",
                           keys[i].text + keys[i].begin);
    }
  }
  return HF_OK;
}

/* A column that stands for itself. */
static hf_status column_expression(const step_maker *m, size_t number, step_expression *out) {
  const column *c = &m->step->in.columns->columns[number];
  step_ref *ref = arena_alloc(m->arena, sizeof *ref);
  char *canonical = arena_printf(m->arena, "#%zu", number);
  if (ref == NULL || canonical == NULL) {
    return build_out_of_memory(m);
  }
  *ref = (step_ref){.column = number, .parts = 1};
  *out = (step_expression){.name = c->name,
                           .type = c->type,
                           .refs = ref,
                           .n_refs = 1,
                           .order = "",
                           .canonical = canonical,
                           .weight = 1,
                           .shape = STEP_COLUMN | STEP_CHEAP};
  return HF_OK;
}

static bool is_below_star(const step_maker *m, const step_expression *star, size_t number) {
  const char *label = step_label(&m->step->in, number);
  return *star->star_of == '\0' || (label != NULL && strcasecmp(label, star->star_of) == 0);
}

/* Writes each plain star as the columns that it stands for. */
static hf_status expand_stars(const step_maker *m, step_expression **list) {
  size_t n_in = m->step->in.columns->n_columns, n = 0, n_stars = 0;
  for (size_t i = 0; i < m->step->n_expressions; i++) {
    n_stars += (*list)[i].star_of != NULL;
  }
  if (n_stars == 0) {
    return HF_OK;
  }
  step_expression *all = arena_array(m->arena, m->step->n_expressions + n_stars * n_in + 1, sizeof *all);
  if (all == NULL) {
    return build_out_of_memory(m);
  }
  for (size_t i = 0; i < m->step->n_expressions; i++) {
    step_expression *e = &(*list)[i];
    size_t before = n;
    for (size_t k = 0; e->star_of != NULL && k < n_in; k++) {
      if (is_below_star(m, e, k)) {
        HF_TRY(column_expression(m, k, &all[n++]));
      }
    }
    if (n == before) {
      all[n++] = *e;
    } else if (e->name != NULL) {
      return build_invalid(m, "a star cannot have a name", e->name);
    }
  }
  *list = all;
  m->step->n_expressions = n;
  return HF_OK;
}

/* -------------------------------------------------------------------- columns */

/* Columns of a result that are being listed. */
typedef struct result {
  column *columns;
  const char **labels;
  size_t n;
} result;

static hf_status result_begin(const step_maker *m, size_t room, result *out) {
  *out = (result){.columns = arena_array(m->arena, room + 1, sizeof(column)),
                  .labels = arena_array(m->arena, room + 1, sizeof(char *))};
  return out->columns == NULL || out->labels == NULL ? build_out_of_memory(m) : HF_OK;
}

static void result_add(result *r, const char *name, const data_type *type, const char *label) {
  r->columns[r->n] = (column){name, type};
  r->labels[r->n++] = label;
}

/* `labelled`: each column keeps its own label; else all have the alias of the input, or none. */
static hf_status result_end(const step_maker *m, result *r, const char *alias, bool labelled) {
  schema *columns = arena_alloc(m->arena, sizeof *columns);
  if (columns == NULL) {
    return build_out_of_memory(m);
  }
  *columns = (schema){r->n, r->columns};
  m->step->out = (step_side){.columns = columns, .alias = alias, .labels = labelled ? r->labels : NULL};
  return HF_OK;
}

/* Lists what expressions make; *known is false when a type is still missing. */
static hf_status add_expressions(const step_maker *m, const step_expression *list, size_t n, result *r,
                                 bool *known) {
  for (size_t i = 0; i < n; i++) {
    const step_expression *e = &list[i];
    if ((e->shape & STEP_STAR) == 0) {
      *known = *known && e->name != NULL && e->type != NULL;
      result_add(r, e->name, e->type, NULL);
      continue;
    }
    *known = *known && e->many != NULL;
    for (size_t k = 0; e->many != NULL && k < e->many->n_columns; k++) {
      result_add(r, e->many->columns[k].name, e->many->columns[k].type, NULL);
    }
  }
  (void)m;
  return HF_OK;
}

static size_t count_columns(const step_expression *list, size_t n) {
  size_t count = n;
  for (size_t i = 0; i < n; i++) {
    count += list[i].many == NULL ? 0 : list[i].many->n_columns;
  }
  return count;
}

static hf_status finish_listed(const step_maker *m) {
  relation_step *step = m->step;
  result r;
  bool known = true;
  HF_TRY(result_begin(
      m, count_columns(step->groups, step->n_groups) + count_columns(step->expressions, step->n_expressions),
      &r));
  HF_TRY(add_expressions(m, step->groups, step->n_groups, &r, &known));
  HF_TRY(add_expressions(m, step->expressions, step->n_expressions, &r, &known));
  if (!known) {
    step->out = (step_side){.columns = NULL};
    return HF_OK;
  }
  HF_TRY(result_end(m, &r, NULL, false));
  return build_inside_names(m, &step->out);
}

/* ---------------------------------------------------------------------- kinds */

static hf_status make_project(const step_maker *m, const build_step *given) {
  step_expression *list = NULL;
  if (given->n_expressions == 0) {
    return build_invalid(m, "a selection needs an expression", "none");
  }
  HF_TRY(read_list(m, given->expressions, given->n_expressions, &list));
  m->step->n_expressions = given->n_expressions;
  HF_TRY(expand_stars(m, &list));
  m->step->expressions = list;
  HF_TRY(build_bind(m, list, NULL));
  return finish_listed(m);
}

/* Several conditions are one with AND, so that there is one form of a filter. Each must be right alone. */
static hf_status join_conditions(const step_maker *m, const build_step *given, build_expression *out) {
  step_expression *alone = NULL;
  buf text = {0};
  HF_TRY(read_list(m, given->expressions, given->n_expressions, &alone));
  for (size_t i = 0; i < given->n_expressions; i++) {
    buf_text(&text, i == 0 ? "(" : " AND (");
    buf_append(&text, alone[i].text + alone[i].begin, alone[i].end - alone[i].begin);
    buf_char(&text, ')');
  }
  *out = (build_expression){.text = text.failed ? NULL : arena_strdup(m->scratch, buf_cstr(&text))};
  buf_reset(&text);
  return out->text == NULL ? build_out_of_memory(m) : HF_OK;
}

/* Filter, sort, distinct: the columns stay. */
static hf_status make_checked(const step_maker *m, const build_step *given) {
  step_expression *list = NULL;
  if (given->n_expressions == 0 && given->kind != BUILD_DISTINCT) {
    return build_invalid(m, given->kind == BUILD_SORT ? "an order needs a key" : "a filter needs a condition",
                         "none");
  }
  build_expression joined;
  bool joins = given->kind == BUILD_FILTER && given->n_expressions > 1;
  HF_TRY(joins ? join_conditions(m, given, &joined) : HF_OK);
  m->step->n_expressions = joins ? 1 : given->n_expressions;
  HF_TRY(read_list(m, joins ? &joined : given->expressions, m->step->n_expressions, &list));
  m->step->expressions = list;
  if (given->kind != BUILD_FILTER) {
    HF_TRY(check_keys(m, list, m->step->n_expressions));
  }
  for (size_t i = 0; i < m->step->n_expressions; i++) {
    if ((list[i].shape & STEP_ROWS) != 0) { /* DuckDB would give each row several times */
      return build_invalid(m, "an order and a condition may not make other rows: unnest in a step before",
                           list[i].text + list[i].begin);
    }
  }
  m->step->out = m->step->in;
  return build_bind(m, list, NULL);
}

static hf_status check_new_names(const step_maker *m, const step_expression *list) {
  for (size_t i = 0; i < m->step->n_expressions; i++) {
    if (list[i].name == NULL || list[i].name[0] == '\0') {
      return build_invalid(m, "a new column needs a name", list[i].text + list[i].begin);
    }
    if ((list[i].shape & STEP_STAR) != 0) { /* and an unnest of several columns is refused when it is bound */
      return build_invalid(m, "a new column takes an expression of one column", list[i].name);
    }
    for (size_t k = 0; k < i; k++) {
      if (strcasecmp(list[i].name, list[k].name) == 0) {
        return build_invalid(m, "a new column is given twice", list[i].name);
      }
    }
  }
  return HF_OK;
}

static hf_status place_columns(const step_maker *m, const step_expression *list) {
  relation_step *step = m->step;
  const step_side *in = &step->in;
  size_t n_in = in->columns->n_columns, n_new = step->n_expressions;
  size_t *places = arena_array(m->arena, n_in + n_new + 1, sizeof *places);
  bool *is_placed = arena_array(m->scratch, n_new + 1, sizeof *is_placed);
  result r;
  HF_TRY(result_begin(m, n_in + n_new, &r));
  if (places == NULL || is_placed == NULL) {
    return build_out_of_memory(m);
  }
  for (size_t i = 0; i < n_in; i++) {
    const column *c = &in->columns->columns[i];
    places[i] = SIZE_MAX;
    for (size_t k = 0; k < n_new; k++) {
      if (strcasecmp(c->name, list[k].name) == 0) {
        places[i] = k;
        is_placed[k] = true;
      }
    }
    const step_expression *e = places[i] == SIZE_MAX ? NULL : &list[places[i]];
    result_add(&r, e == NULL ? c->name : e->name, e == NULL ? c->type : e->type, step_label(in, i));
  }
  for (size_t k = 0; k < n_new; k++) {
    if (!is_placed[k]) {
      places[r.n] = k;
      result_add(&r, list[k].name, list[k].type, NULL);
    }
  }
  step->places = places;
  step->n_places = r.n;
  HF_TRY(result_end(m, &r, in->alias, in->labels != NULL));
  return in->inside == NULL ? HF_OK : build_inside_names(m, &step->out);
}

static hf_status make_with_columns(const step_maker *m, const build_step *given) {
  step_expression *list = NULL;
  if (given->n_expressions == 0) {
    return build_invalid(m, "a new column needs an expression", "none");
  }
  HF_TRY(read_list(m, given->expressions, given->n_expressions, &list));
  m->step->n_expressions = given->n_expressions;
  m->step->expressions = list;
  HF_TRY(check_new_names(m, list));
  HF_TRY(build_bind(m, list, NULL));
  HF_TRY(place_columns(m, list));
  if (m->step->is_deferred) {
    m->step->out.columns = NULL;
  }
  return HF_OK;
}

static bool is_named(const build_step *given, const char *name) {
  for (size_t i = 0; i < given->n_expressions; i++) {
    if (strcasecmp(given->expressions[i].text, name) == 0) {
      return true;
    }
  }
  return false;
}

static hf_status check_names_given(const step_maker *m, const build_step *given) {
  for (size_t i = 0; i < given->n_expressions; i++) {
    const build_expression *e = &given->expressions[i];
    if (e->text == NULL || (given->kind == BUILD_RENAME && (e->name == NULL || e->name[0] == '\0'))) {
      return build_invalid(m, "a name of a column is empty", "NULL");
    }
  }
  return HF_OK;
}

static hf_status make_drop(const step_maker *m, const build_step *given) {
  const step_side *in = &m->step->in;
  result r;
  HF_TRY(check_names_given(m, given));
  HF_TRY(result_begin(m, in->columns->n_columns, &r));
  size_t *kept = arena_array(m->arena, in->columns->n_columns + 1, sizeof *kept);
  if (kept == NULL) {
    return build_out_of_memory(m);
  }
  for (size_t i = 0; i < in->columns->n_columns; i++) {
    const column *c = &in->columns->columns[i];
    if (!is_named(given, c->name)) {
      kept[r.n] = i;
      result_add(&r, c->name, c->type, step_label(in, i));
    }
  }
  if (r.n == 0) {
    return build_invalid(m, "no column would be left",
                         given->n_expressions > 0 ? given->expressions[0].text : "");
  }
  m->step->kept = kept;
  m->step->n_kept = r.n;
  HF_TRY(result_end(m, &r, in->alias, in->labels != NULL));
  return in->inside == NULL ? HF_OK : build_inside_names(m, &m->step->out);
}

static hf_status find_named(const step_maker *m, const step_side *side, const char *name, size_t *out) {
  bool several = false;
  *out = step_find_column(side->columns, name, &several);
  if (*out == SIZE_MAX) {
    return build_column_missing(m, side, name);
  }
  return several ? build_invalid(m, "several columns have this name", name) : HF_OK;
}

static hf_status make_rename(const step_maker *m, const build_step *given) {
  const step_side *in = &m->step->in;
  size_t n = in->columns->n_columns;
  result r;
  HF_TRY(check_names_given(m, given));
  HF_TRY(result_begin(m, n, &r));
  size_t *kept = arena_array(m->arena, n + 1, sizeof *kept);
  if (kept == NULL) {
    return build_out_of_memory(m);
  }
  for (size_t i = 0; i < n; i++) {
    kept[i] = i;
    result_add(&r, in->columns->columns[i].name, in->columns->columns[i].type, step_label(in, i));
  }
  for (size_t i = 0; i < given->n_expressions; i++) {
    size_t at = 0;
    HF_TRY(find_named(m, in, given->expressions[i].text, &at));
    r.columns[at].name = arena_strdup(m->arena, given->expressions[i].name);
    if (r.columns[at].name == NULL) {
      return build_out_of_memory(m);
    }
  }
  m->step->kept = kept;
  m->step->n_kept = n;
  HF_TRY(result_end(m, &r, in->alias, in->labels != NULL));
  return build_inside_names(m, &m->step->out);
}

static hf_status make_aggregate(const step_maker *m, const build_step *given) {
  step_expression *groups = NULL, *list = NULL;
  if (given->n_groups + given->n_expressions == 0) {
    return build_invalid(m, "an aggregate step needs a group or an aggregate", "none");
  }
  HF_TRY(read_list(m, given->groups, given->n_groups, &groups));
  HF_TRY(read_list(m, given->expressions, given->n_expressions, &list));
  HF_TRY(check_keys(m, groups, given->n_groups));
  m->step->groups = groups;
  m->step->n_groups = given->n_groups;
  m->step->expressions = list;
  m->step->n_expressions = given->n_expressions;
  HF_TRY(build_bind(m, list, groups));
  return finish_listed(m);
}

static hf_status make_limit(const step_maker *m, const build_step *given) {
  m->step->has_limit = given->has_limit;
  m->step->limit = given->limit;
  m->step->offset = given->offset;
  m->step->out = m->step->in;
  if ((given->has_limit && given->limit > INT64_MAX) || given->offset > INT64_MAX) {
    return build_invalid(m, "a limit or offset is too large", "more than 2^63-1");
  }
  return HF_OK;
}

static hf_status make_alias(const step_maker *m, const build_step *given) {
  if (given->name == NULL || given->name[0] == '\0') {
    return build_invalid(m, "an alias needs a name", "NULL");
  }
  m->step->name = arena_strdup(m->arena, given->name);
  m->step->out = m->step->in;
  m->step->out.alias = m->step->name;
  m->step->out.labels = NULL;
  return m->step->name == NULL ? build_out_of_memory(m) : HF_OK;
}

bool relation_can_deal(const data_type *type) {
  static const bool kinds[TYPE_KIND_COUNT] = {
      [TYPE_BOOLEAN] = true,      [TYPE_TINYINT] = true,      [TYPE_SMALLINT] = true,
      [TYPE_INTEGER] = true,      [TYPE_BIGINT] = true,       [TYPE_HUGEINT] = true,
      [TYPE_UTINYINT] = true,     [TYPE_USMALLINT] = true,    [TYPE_UINTEGER] = true,
      [TYPE_UBIGINT] = true,      [TYPE_UHUGEINT] = true,     [TYPE_DECIMAL] = true,
      [TYPE_DATE] = true,         [TYPE_TIMESTAMP] = true,    [TYPE_TIMESTAMP_S] = true,
      [TYPE_TIMESTAMP_MS] = true, [TYPE_TIMESTAMP_NS] = true, [TYPE_TIMESTAMP_TZ] = true,
      [TYPE_VARCHAR] = true,      [TYPE_UUID] = true,
  };
  return kinds[type->kind];
}

static hf_status make_repartition(const step_maker *m, const build_step *given) {
  size_t n = given->n_expressions, *columns = arena_array(m->arena, n + 1, sizeof *columns);
  if (columns == NULL) {
    return build_out_of_memory(m);
  }
  if (n == 0) {
    return build_invalid(m, "a repartition needs a column", "none");
  }
  if (given->limit < REPARTITION_LEAST || given->limit > REPARTITION_MOST) {
    return error_set(m->error, HF_E_INVALID_ARGUMENT, "partitions must be %d to %d: %llu", REPARTITION_LEAST,
                     REPARTITION_MOST, (unsigned long long)given->limit);
  }
  HF_TRY(check_names_given(m, given));
  for (size_t i = 0; i < n; i++) {
    const char *name = given->expressions[i].text;
    HF_TRY(find_named(m, &m->step->in, name, &columns[i]));
    if (!relation_can_deal(m->step->in.columns->columns[columns[i]].type)) {
      return build_invalid(m, "rows cannot be dealt by a column of this type", name);
    }
    for (size_t k = 0; k < i; k++) {
      if (columns[k] == columns[i]) {
        return build_invalid(m, "a column is given twice", name);
      }
    }
  }
  m->step->kept = columns;
  m->step->n_kept = n;
  m->step->limit = given->limit;
  m->step->out = m->step->in;
  return HF_OK;
}

bool relation_is_dealt(const relation *r, relation_dealing *out) {
  while (r->view.kind == RELATION_BUILT && r->view.step->kind == BUILD_ALIAS) {
    r = r->view.input;
  }
  if (r->view.kind != RELATION_BUILT || r->view.step->kind != BUILD_REPARTITION) {
    return false;
  }
  const relation_step *step = r->view.step;
  *out = (relation_dealing){step->n_kept, step->kept, (uint32_t)step->limit};
  return true;
}

/* ------------------------------------------------------------------------ pairs */

static void add_rest(const step_maker *m, const step_side *side, size_t base, size_t *kept, result *r) {
  for (size_t i = 0; i < side->columns->n_columns; i++) {
    bool is_key = false;
    for (size_t k = 0; k < m->step->n_using; k++) {
      is_key = is_key || m->step->using_columns[base == 0 ? k : m->step->n_using + k] == i;
    }
    if (!is_key) {
      kept[r->n] = base + i;
      result_add(r, side->columns->columns[i].name, side->columns->columns[i].type, step_label(side, i));
    }
  }
}

static hf_status find_using(const step_maker *m, const build_step *given) {
  size_t *found = arena_array(m->arena, 2 * given->n_using + 1, sizeof *found);
  if (found == NULL) {
    return build_out_of_memory(m);
  }
  for (size_t i = 0; i < given->n_using; i++) {
    if (given->using_columns[i] == NULL) {
      return build_invalid(m, "a name of a column is empty", "NULL");
    }
    HF_TRY(find_named(m, &m->step->in, given->using_columns[i], &found[i]));
    HF_TRY(find_named(m, &m->step->other, given->using_columns[i], &found[given->n_using + i]));
    for (size_t k = 0; k < i; k++) {
      if (found[k] == found[i]) {
        return build_invalid(m, "a column is given twice", given->using_columns[i]);
      }
    }
  }
  m->step->using_columns = found;
  m->step->n_using = given->n_using;
  return HF_OK;
}

/* The common type of the columns that a join is on. */
static hf_status add_using(const step_maker *m, size_t *kept, result *r) {
  const relation_step *step = m->step;
  buf head = {0}, tail = {0};
  schema bound = {0};
  const char *sides[2];
  step_side_names(step, sides);
  buf_text(&head, "SELECT ");
  for (size_t i = 0; i < step->n_using; i++) {
    buf_text(&head, i == 0 ? "" : ", ");
    step_put_using(step, sides, i, &head);
  }
  buf_text(&head, " FROM ");
  buf_text(&tail, " ON ");
  step_put_using_condition(step, sides, &tail);
  hf_status status =
      head.failed || tail.failed
          ? build_out_of_memory(m)
          : build_describe_pair(m, buf_cstr(&head), step_join_word(step->join), buf_cstr(&tail), &bound);
  buf_reset(&head);
  buf_reset(&tail);
  HF_TRY(status);
  for (size_t i = 0; i < step->n_using; i++) {
    size_t at = step->using_columns[i];
    const data_type *type = data_type_copy(bound.columns[i].type, m->arena);
    if (type == NULL) {
      return build_out_of_memory(m);
    }
    kept[r->n] = at;
    result_add(r, step->in.columns->columns[at].name, type, step_label(&step->in, at));
  }
  return HF_OK;
}

static hf_status check_join(const step_maker *m, const build_step *given) {
  bool is_plain = given->n_expressions + given->n_using == 0;
  if (given->n_expressions > 1 || (given->n_expressions > 0 && given->n_using > 0)) {
    return build_invalid(m, "a join takes one condition, or columns", "both");
  }
  if (given->join == JOIN_TYPE_CROSS && !is_plain) {
    return build_invalid(m, "a cross join takes no condition",
                         given->n_using > 0 ? given->using_columns[0] : given->expressions[0].text);
  }
  if (is_plain && given->join != JOIN_TYPE_CROSS && given->join != JOIN_TYPE_INNER) {
    return build_invalid(m, "this join needs a condition", step_join_word(given->join));
  }
  return HF_OK;
}

static hf_status make_join(const step_maker *m, const build_step *given) {
  relation_step *step = m->step;
  size_t n_in = step->in.columns->n_columns, n = n_in + step->other.columns->n_columns;
  step_expression *list = NULL;
  bool one_side = given->join == JOIN_TYPE_SEMI || given->join == JOIN_TYPE_ANTI;
  result r;
  step->join = given->join;
  HF_TRY(check_join(m, given));
  HF_TRY(read_list(m, given->expressions, given->n_expressions, &list));
  step->expressions = list;
  step->n_expressions = given->n_expressions;
  HF_TRY(build_bind(m, list, NULL));
  HF_TRY(find_using(m, given));
  HF_TRY(result_begin(m, n, &r));
  size_t *kept = arena_array(m->arena, n + 1, sizeof *kept);
  if (kept == NULL) {
    return build_out_of_memory(m);
  }
  HF_TRY(given->n_using == 0 ? HF_OK : add_using(m, kept, &r));
  add_rest(m, &step->in, 0, kept, &r);
  if (!one_side) {
    add_rest(m, &step->other, n_in, kept, &r);
  }
  step->kept = kept;
  step->n_kept = r.n;
  HF_TRY(result_end(m, &r, NULL, true));
  return build_inside_names(m, &step->out);
}

static hf_status make_set(const step_maker *m, const build_step *given) {
  relation_step *step = m->step;
  schema bound = {0};
  result r;
  step->set = given->set;
  step->all = given->all;
  step->by_name = given->by_name;
  if (given->by_name && given->set != SET_TYPE_UNION) {
    return build_invalid(m, "only a union goes by name", "intersect, except");
  }
  if (given->by_name && (step->in.inside != NULL || step->other.inside != NULL)) {
    return build_invalid(m, "a union by name needs columns of different names", "repeated or empty");
  }
  const char *between = arena_printf(m->scratch, "%sSELECT * FROM ", step_set_words(step));
  HF_TRY(between == NULL ? build_out_of_memory(m)
                         : build_describe_pair(m, "SELECT * FROM ", between, "", &bound));
  HF_TRY(result_begin(m, bound.n_columns, &r));
  for (size_t i = 0; i < bound.n_columns; i++) {
    bool is_left = !given->by_name && i < step->in.columns->n_columns;
    const char *name =
        is_left ? step->in.columns->columns[i].name : arena_strdup(m->arena, bound.columns[i].name);
    const data_type *type = data_type_copy(bound.columns[i].type, m->arena);
    if (name == NULL || type == NULL) {
      return build_out_of_memory(m);
    }
    result_add(&r, name, type, NULL);
  }
  HF_TRY(result_end(m, &r, NULL, false));
  return build_inside_names(m, &step->out);
}

/* ------------------------------------------------------------------------- door */

static hf_status make(const step_maker *m, const build_step *given) {
  switch (given->kind) {
    case BUILD_PROJECT:
      return make_project(m, given);
    case BUILD_FILTER:
    case BUILD_SORT:
    case BUILD_DISTINCT:
      return make_checked(m, given);
    case BUILD_WITH_COLUMNS:
      return make_with_columns(m, given);
    case BUILD_RENAME:
      return make_rename(m, given);
    case BUILD_DROP:
      return make_drop(m, given);
    case BUILD_AGGREGATE:
      return make_aggregate(m, given);
    case BUILD_JOIN:
      return make_join(m, given);
    case BUILD_LIMIT:
      return make_limit(m, given);
    case BUILD_SET:
      return make_set(m, given);
    case BUILD_ALIAS:
      return make_alias(m, given);
    case BUILD_REPARTITION:
      return make_repartition(m, given);
  }
  return build_invalid(m, "no step is of this kind", "");
}

/* Whether the rows come out in the order in which they came in, or in one of their own. */
static bool is_ordered(const relation_step *step, const relation *input) {
  bool keeps = step->kind != BUILD_AGGREGATE && step->kind != BUILD_JOIN && step->kind != BUILD_SET &&
               step->kind != BUILD_DISTINCT && step->kind != BUILD_REPARTITION;
  return step->kind == BUILD_SORT || (keeps && input->view.top_ordered);
}

static const char *first_clock(const step_expression *list, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (list[i].clock != NULL) {
      return list[i].clock;
    }
  }
  return NULL;
}

/* LIMIT behind OFFSET is one step with both, over what is below the OFFSET, so that there is one form of it. */
static build_step one_limit(const build_step *given) {
  build_step step = *given;
  const relation *input = given->input;
  const relation_step *below = input->view.kind == RELATION_BUILT ? input->view.step : NULL;
  if (given->kind == BUILD_LIMIT && given->has_limit && given->offset == 0 && below != NULL &&
      below->kind == BUILD_LIMIT && !below->has_limit) {
    step.offset = below->offset;
    step.columns = below->in.columns;
    step.input = input->view.input;
  }
  return step;
}

static hf_status make_relation(step_maker *m, const build_step *given) {
  relation_step *step = arena_alloc(m->arena, sizeof *step);
  bool is_pair = given->kind == BUILD_JOIN || given->kind == BUILD_SET;
  if (step == NULL) {
    return build_out_of_memory(m);
  }
  step->kind = given->kind;
  m->step = step;
  if (is_pair != (given->other != NULL)) {
    return build_invalid(
        m, is_pair ? "a join or set operation needs another relation" : "this step has one input",
        is_pair ? "NULL" : "other");
  }
  HF_TRY(build_side(m, given->input, given->columns, &step->in));
  HF_TRY(is_pair ? build_side(m, given->other, given->other_columns, &step->other) : HF_OK);
  HF_TRY(make(m, given));
  relation *r = m->made;
  const char *clock = first_clock(step->expressions, step->n_expressions);
  r->view.step = step;
  r->view.input = given->input;
  r->view.other = given->other;
  r->view.top_ordered = is_ordered(step, given->input);
  r->clock = clock != NULL ? clock : first_clock(step->groups, step->n_groups);
  return HF_OK;
}

hf_status relation_build(engine *planner, const build_step *given, const relation_names *names,
                         relation **out, hf_error *error) {
  step_maker m = {.planner = planner, .names = names, .error = error};
  HF_TRY(relation_new(RELATION_BUILT, &m.made, error));
  m.arena = m.made->arena;
  m.scratch = arena_new();
  build_step step = one_limit(given);
  hf_status status = m.scratch == NULL ? build_out_of_memory(&m) : make_relation(&m, &step);
  arena_free(m.scratch);
  if (status == HF_OK) {
    status = relation_finish(m.made, error);
  }
  if (status != HF_OK) {
    relation_drop(m.made);
    return status;
  }
  *out = m.made;
  return HF_OK;
}
