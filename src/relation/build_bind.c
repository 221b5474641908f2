/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binding a step when it is built: its expressions over an empty stand-in for
 * the input, of which only the columns that they name are made, so that a chain
 * of steps costs what its expressions cost. Names and types come from DuckDB.
 * Thread: one with a planning stack.
 */
#include "relation/build_internal.h"

#include "base/nearest.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Where text of an expression stands in the statement. */
typedef struct segment {
  size_t start, length;
  const step_expression *expression;
  size_t offset; /* in the expression's text */
} segment;

/* A statement that is bound in the place of a step. */
typedef struct binding {
  const step_maker *m;
  buf sql;
  segment *segments; /* scratch */
  size_t n_segments, capacity;
  schema shown[2]; /* columns that the stand-ins of input and other have, by the names inside; scratch */
  const char *sides[2];
  hf_status status; /* of the first failure; puts do nothing then */
} binding;

static const step_side *side_of(const binding *b, size_t side) {
  return side == 0 ? &b->m->step->in : &b->m->step->other;
}

static size_t count_of(const binding *b, size_t side) {
  const schema *columns = side_of(b, side)->columns;
  return columns == NULL ? 0 : columns->n_columns;
}

/* ------------------------------------------------------------- the stand-ins */

/* Expressions that are bound together. */
typedef struct bound_list {
  const step_expression *const *items;
  size_t n;
} bound_list;

static bool wants_all(const bound_list *list) {
  for (size_t i = 0; i < list->n; i++) {
    if ((list->items[i]->shape & STEP_ALL_COLUMNS) != 0) {
      return true;
    }
  }
  return false;
}

/* Collects the columns of a side that expressions name; returns how many, sorted and once each. */
static size_t collect(const binding *b, const bound_list *list, size_t side, size_t *out) {
  size_t n = 0, n_in = count_of(b, 0);
  for (size_t i = 0; i < list->n; i++) {
    for (size_t k = 0; k < list->items[i]->n_refs; k++) {
      size_t number = list->items[i]->refs[k].column;
      if ((number >= n_in) == (side == 1)) {
        out[n++] = side == 1 ? number - n_in : number;
      }
    }
  }
  return n;
}

static int compare_sizes(const void *a, const void *b) {
  size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return x < y ? -1 : x > y;
}

static hf_status show_side(binding *b, const bound_list *list, size_t side) {
  size_t n_all = count_of(b, side), n = 0, room = 1;
  bool all = wants_all(list);
  for (size_t i = 0; i < list->n; i++) {
    room += list->items[i]->n_refs;
  }
  size_t *numbers = arena_array(b->m->scratch, all ? n_all + 1 : room, sizeof *numbers);
  column *columns = arena_array(b->m->scratch, all ? n_all + 1 : room, sizeof *columns);
  if (numbers == NULL || columns == NULL) {
    return build_out_of_memory(b->m);
  }
  for (; all && n < n_all; n++) {
    numbers[n] = n;
  }
  if (!all) {
    n = collect(b, list, side, numbers);
    qsort(numbers, n, sizeof *numbers, compare_sizes);
    n += n == 0 && n_all > 0; /* numbers[0] is 0 */
  }
  size_t kept = 0;
  for (size_t i = 0; i < n; i++) {
    if (i == 0 || numbers[i] != numbers[i - 1]) {
      const step_side *of = side_of(b, side);
      columns[kept++] = (column){step_inside_name(of, numbers[i]), of->columns->columns[numbers[i]].type};
    }
  }
  b->shown[side] = (schema){kept, columns};
  return HF_OK;
}

static hf_status begin(binding *b, const step_maker *m, const bound_list *list) {
  *b = (binding){.m = m};
  HF_TRY(show_side(b, list, 0));
  HF_TRY(show_side(b, list, 1));
  step_side_names(m->step, b->sides);
  return HF_OK;
}

/* -------------------------------------------------------------------- text */

static void note_segment(binding *b, const step_expression *e, size_t offset, size_t length) {
  if (b->n_segments == b->capacity) {
    size_t capacity = b->capacity == 0 ? 16 : b->capacity * 2;
    segment *segments = arena_array(b->m->scratch, capacity, sizeof *segments);
    if (segments == NULL) {
      return; /* a position is lost, and nothing else */
    }
    if (b->n_segments > 0) {
      memcpy(segments, b->segments, b->n_segments * sizeof *segments);
    }
    b->segments = segments;
    b->capacity = capacity;
  }
  b->segments[b->n_segments++] = (segment){b->sql.length, length, e, offset};
}

static void put_text(binding *b, const step_expression *e, size_t from, size_t to) {
  note_segment(b, e, from, to - from);
  buf_append(&b->sql, e->text + from, to - from);
}

/* The text of the expression, its columns by the names inside. */
static void put_bare(binding *b, const step_expression *e) {
  size_t at = e->begin;
  for (size_t i = 0; i < e->n_refs && e->refs[i].length > 0; i++) {
    const step_ref *ref = &e->refs[i];
    bool stays = b->sides[1] == NULL && ref->parts == 1 && b->m->step->in.inside == NULL;
    if (stays) {
      continue;
    }
    put_text(b, e, at, ref->offset);
    note_segment(b, e, ref->offset, ref->length);
    step_put_column(b->m->step, b->sides, ref->column, &b->sql);
    at = ref->offset + ref->length;
  }
  put_text(b, e, at, e->end);
}

static void put_expression(binding *b, const step_expression *e) {
  bool is_bare = (e->shape & STEP_STAR) != 0;
  buf_text(&b->sql, is_bare ? "" : "(");
  put_bare(b, e);
  buf_text(&b->sql, is_bare ? "" : ")");
}

static void put_list(binding *b, const bound_list *list, const char *between) {
  for (size_t i = 0; i < list->n; i++) {
    buf_text(&b->sql, i == 0 ? "" : between);
    put_expression(b, list->items[i]);
  }
}

/* A column of the input that stands for itself: beside it, no aggregate may stand. */
static void put_witness(binding *b) {
  if (b->shown[0].n_columns == 0) {
    buf_char(&b->sql, '1');
    return;
  }
  if (b->sides[1] != NULL) {
    buf_sql_name(&b->sql, b->sides[0]);
    buf_char(&b->sql, '.');
  }
  buf_sql_name(&b->sql, b->shown[0].columns[0].name);
}

/* (SELECT c0 AS "name", … FROM hf_scan('0')) */
static void put_stand_in(binding *b, size_t side) {
  const schema *shown = &b->shown[side];
  buf_text(&b->sql, shown->n_columns == 0 ? "(SELECT *" : "(SELECT ");
  for (size_t i = 0; i < shown->n_columns; i++) {
    buf_printf(&b->sql, "%sc%zu AS ", i == 0 ? "" : ", ", i);
    buf_sql_name(&b->sql, shown->columns[i].name);
  }
  buf_printf(&b->sql, " FROM hf_scan('%zu'))", side);
  if (b->sides[side] != NULL) {
    buf_text(&b->sql, " AS ");
    buf_sql_name(&b->sql, b->sides[side]);
  }
}

static void put_from(binding *b) {
  buf_text(&b->sql, " FROM ");
  put_stand_in(b, 0);
}

/* ------------------------------------------------------------------ failures */

static const segment *segment_at(const binding *b, int64_t position) {
  const segment *found = NULL;
  for (size_t i = 0; position >= 0 && i < b->n_segments; i++) {
    found = b->segments[i].start <= (size_t)position ? &b->segments[i] : found;
  }
  return found;
}

/* The name that was not found, out of either of two messages; NULL: the message is another. */
static const char *missing_name(const binding *b, const char *message) {
  static const char plain[] = "no column has this name: ", quoted[] = " named \"";
  const char *start = strstr(message, plain);
  if (start != NULL) {
    return start + strlen(plain);
  }
  start = strstr(message, quoted);
  const char *end = start == NULL ? NULL : strrchr(start + strlen(quoted), '"');
  return end == NULL
             ? NULL
             : arena_strndup(b->m->scratch, start + strlen(quoted), (size_t)(end - start) - strlen(quoted));
}

static void suggest(const binding *b, hf_error *error) {
  const char *wanted = error->code == HF_E_COLUMN_NOT_FOUND ? missing_name(b, error->message) : NULL;
  if (wanted == NULL) {
    return;
  }
  nearest near = nearest_to(wanted);
  for (size_t side = 0; side < 2; side++) {
    for (size_t i = 0; i < count_of(b, side); i++) {
      nearest_offer(&near, side_of(b, side)->columns->columns[i].name);
    }
  }
  if (near.best != NULL) {
    error_hint(error, "did you mean \"%s\"?", near.best);
  } else {
    error_hint(error, "use one of the columns of the DataFrame");
  }
}

/* The user's words: the expression in the message, the position in it. */
static void explain(const binding *b, hf_error *error) {
  if (error == NULL || error->message == NULL) {
    return;
  }
  const segment *at = segment_at(b, error->position);
  suggest(b, error);
  if (strstr(error->message, "must appear in the GROUP BY clause") != NULL &&
      b->m->step->kind != BUILD_AGGREGATE) {
    error_set(error, HF_E_BIND, "an aggregate stands where each row has a value of its own");
    error_hint(error, "make it an aggregate step, or a window: sum(x) OVER ()");
  }
  const step_expression *e = at == NULL ? NULL : at->expression;
  error->position = -1;
  if (e != NULL) {
    size_t length = e->end - e->begin;
    error_wrap(error, "in \"%.*s%s\"", length > 120 ? 120 : (int)length, e->text + e->begin,
               length > 120 ? "…" : "");
  }
}

/* As explain, with the position that was found before. */
static hf_status describe(binding *b, schema *out) {
  if (b->sql.failed) {
    buf_reset(&b->sql);
    return build_out_of_memory(b->m);
  }
  engine_scan scans[2] = {{.id = "0", .columns = &b->shown[0]}, {.id = "1", .columns = &b->shown[1]}};
  engine_set_scans(b->m->planner, scans, 2);
  hf_status status = engine_describe(b->m->planner, buf_cstr(&b->sql), b->m->scratch, out, b->m->error);
  engine_set_scans(b->m->planner, NULL, 0);
  buf_reset(&b->sql);
  if (status != HF_OK && b->m->error != NULL) {
    int64_t position = b->m->error->position;
    const segment *at = segment_at(b, position);
    explain(b, b->m->error);
    if (at != NULL) {
      size_t within = (size_t)position - at->start;
      within = within > at->length ? at->length : within;
      b->m->error->position = (int64_t)(at->offset + within) - STEP_TEXT_HEAD;
    }
  }
  return status;
}

/* ---------------------------------------------------------------- by the kind */

static hf_status settle(const step_maker *m, step_expression *e, const column *bound) {
  e->type = data_type_copy(bound->type, m->arena);
  if (e->name == NULL) {
    e->name = arena_strdup(m->arena, bound->name);
  }
  return e->type == NULL || e->name == NULL ? build_out_of_memory(m) : HF_OK;
}

/* The names that lowering gave columns, back to the user's. */
static const char *outside_name(const step_side *side, const char *name) {
  for (size_t i = 0; side->inside != NULL && i < side->columns->n_columns; i++) {
    if (strcmp(side->inside[i], name) == 0) {
      return side->columns->columns[i].name;
    }
  }
  return name;
}

/* Columns of an expression that may make several. `n_before`: columns of the statement that are not its. */
static hf_status settle_many(const step_maker *m, step_expression *e, const schema *bound, size_t n_before) {
  size_t n = bound->n_columns - n_before;
  if (n == 1 && (e->shape & STEP_STAR) == 0) {
    return settle(m, e, &bound->columns[n_before]);
  }
  if (e->name != NULL) {
    return build_invalid(m, "an expression that makes several columns cannot have one name", e->name);
  }
  column *columns = arena_array(m->scratch, n + 1, sizeof *columns);
  schema *many = arena_alloc(m->arena, sizeof *many);
  if (columns == NULL || many == NULL) {
    return build_out_of_memory(m);
  }
  for (size_t i = 0; i < n; i++) {
    columns[i] = bound->columns[n_before + i];
    columns[i].name = outside_name(&m->step->in, columns[i].name);
  }
  e->shape |= STEP_STAR;
  e->many = many;
  return schema_copy(&(schema){n, columns}, m->arena, many, m->error);
}

static bool may_make_many(const step_expression *e) {
  return (e->shape & (STEP_STAR | STEP_ROWS)) != 0;
}

static hf_status bind_one(const step_maker *m, step_expression *e) {
  binding b;
  schema bound = {0};
  const step_expression *item = e;
  bound_list list = {&item, 1};
  HF_TRY(begin(&b, m, &list));
  buf_text(&b.sql, "SELECT ");
  put_witness(&b);
  buf_text(&b.sql, ", ");
  put_expression(&b, e);
  put_from(&b);
  HF_TRY(describe(&b, &bound));
  return settle_many(m, e, &bound, 1);
}

/* Expressions that the star made are known; those that may make several columns are bound one by one. */
static hf_status bind_selected(const step_maker *m, step_expression *expressions, size_t n) {
  const step_expression **items = arena_array(m->scratch, n + 1, sizeof(void *));
  binding b;
  schema bound = {0};
  bound_list list = {items, 0};
  if (items == NULL) {
    return build_out_of_memory(m);
  }
  for (size_t i = 0; i < n; i++) {
    if (expressions[i].text != NULL && !may_make_many(&expressions[i])) {
      items[list.n++] = &expressions[i];
    }
  }
  if (list.n > 0) {
    HF_TRY(begin(&b, m, &list));
    buf_text(&b.sql, "SELECT ");
    put_witness(&b);
    buf_text(&b.sql, ", ");
    put_list(&b, &list, ", ");
    put_from(&b);
    HF_TRY(describe(&b, &bound));
  }
  for (size_t i = 0, at = 1; i < n; i++) {
    if (expressions[i].text != NULL) {
      HF_TRY(may_make_many(&expressions[i]) ? bind_one(m, &expressions[i])
                                            : settle(m, &expressions[i], &bound.columns[at++]));
    }
  }
  return HF_OK;
}

static hf_status list_of(const step_maker *m, const step_expression *expressions, size_t n, bound_list *out) {
  const step_expression **items = arena_array(m->scratch, out->n + n + 1, sizeof(void *));
  if (items == NULL) {
    return build_out_of_memory(m);
  }
  if (out->n > 0) {
    memcpy(items, out->items, out->n * sizeof(void *));
  }
  for (size_t i = 0; i < n; i++) {
    items[out->n + i] = &expressions[i];
  }
  *out = (bound_list){items, out->n + n};
  return HF_OK;
}

/* Conditions and keys make no column: it is enough that they can be bound. */
static hf_status bind_checked(const step_maker *m, const char *head, const char *middle,
                              const char *between) {
  binding b;
  schema bound;
  bound_list list = {NULL, 0};
  HF_TRY(list_of(m, m->step->expressions, m->step->n_expressions, &list));
  HF_TRY(begin(&b, m, &list));
  buf_text(&b.sql, head);
  if (*middle == '\0') { /* DISTINCT ON (keys) */
    put_list(&b, &list, between);
    buf_text(&b.sql, ") ");
  }
  put_witness(&b);
  put_from(&b);
  if (*middle != '\0') {
    buf_text(&b.sql, middle);
    put_list(&b, &list, between);
  }
  return describe(&b, &bound);
}

static hf_status bind_aggregate(const step_maker *m, step_expression *groups, step_expression *aggregates) {
  binding b;
  schema bound = {0};
  size_t n_groups = m->step->n_groups, n = m->step->n_expressions;
  bound_list list = {NULL, 0};
  HF_TRY(list_of(m, groups, n_groups, &list));
  HF_TRY(list_of(m, aggregates, n, &list));
  HF_TRY(begin(&b, m, &list));
  buf_text(&b.sql, "SELECT ");
  put_list(&b, &list, ", ");
  put_from(&b);
  buf_text(&b.sql, n_groups == 0 ? " GROUP BY ()" : "");
  for (size_t i = 1; i <= n_groups; i++) {
    buf_printf(&b.sql, "%s%zu", i == 1 ? " GROUP BY " : ", ", i);
  }
  HF_TRY(describe(&b, &bound));
  if (bound.n_columns != n_groups + n) {
    return build_invalid(m, "an aggregate step takes expressions of one column each", "*");
  }
  for (size_t i = 0; i < n_groups; i++) {
    HF_TRY(settle(m, &groups[i], &bound.columns[i]));
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(settle(m, &aggregates[i], &bound.columns[n_groups + i]));
  }
  return HF_OK;
}

static hf_status bind_condition(const step_maker *m) {
  binding b;
  schema bound;
  bound_list list = {NULL, 0};
  HF_TRY(list_of(m, m->step->expressions, m->step->n_expressions, &list));
  if (list.n == 0) {
    return HF_OK;
  }
  HF_TRY(begin(&b, m, &list));
  buf_text(&b.sql, "SELECT 1 FROM ");
  put_stand_in(&b, 0);
  buf_text(&b.sql, " JOIN ");
  put_stand_in(&b, 1);
  buf_text(&b.sql, " ON ");
  put_list(&b, &list, " AND ");
  return describe(&b, &bound);
}

hf_status build_bind(const step_maker *m, step_expression *expressions, step_expression *groups) {
  const relation_step *step = m->step;
  if (step->is_deferred) {
    return HF_OK;
  }
  switch (step->kind) {
    case BUILD_PROJECT:
    case BUILD_WITH_COLUMNS:
      return bind_selected(m, expressions, step->n_expressions);
    case BUILD_FILTER:
      return bind_checked(m, "SELECT ", " WHERE ", " AND ");
    case BUILD_SORT:
      return bind_checked(m, "SELECT ", " ORDER BY ", ", ");
    case BUILD_DISTINCT:
      return step->n_expressions == 0 ? HF_OK : bind_checked(m, "SELECT DISTINCT ON (", "", ", ");
    case BUILD_AGGREGATE:
      return bind_aggregate(m, groups, expressions);
    case BUILD_JOIN:
      return bind_condition(m);
    default:
      return HF_OK;
  }
}

hf_status build_describe_pair(const step_maker *m, const char *head, const char *between, const char *tail,
                              schema *out) {
  binding b;
  step_expression all = {.shape = STEP_ALL_COLUMNS};
  const step_expression *item = &all;
  bound_list list = {&item, 1};
  HF_TRY(begin(&b, m, &list));
  buf_text(&b.sql, head);
  put_stand_in(&b, 0);
  buf_text(&b.sql, between);
  put_stand_in(&b, 1);
  buf_text(&b.sql, tail);
  return describe(&b, out);
}
