/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adding steps to a block. An expression may stand for its column in another one
 * when that neither computes it more often nor in another place: it is a column
 * or a constant, or it is used once; operators over columns may be used more often,
 * since DuckDB computes equal ones once. What is volatile, looks at all rows, makes
 * rows or holds names that are not columns of the input is never moved.
 *
 * B1. What a block gives is what its steps give one after the other.
 * B2. A volatile expression is computed as often as in its own step, for the rows that come out.
 * B3. A literal keeps the type of its column: it is written with a CAST.
 * Thread: one at a time.
 */
#include "plan/block.h"

#include "base/fault.h"

#include <string.h>
#include <strings.h>

/* Nesting of text is bounded: DuckDB's parser recurses. */
enum { HEAVIEST = 100, MOST_CONDITIONS = 500 };

bool block_takes_kind(build_kind kind) {
  return kind == BUILD_PROJECT || kind == BUILD_FILTER || kind == BUILD_WITH_COLUMNS ||
         kind == BUILD_RENAME || kind == BUILD_DROP;
}

/* ------------------------------------------------------------------------ text */

static const char *take_text(const block *b, buf *text) {
  const char *copy = text->failed ? NULL : arena_strndup(b->l->arena, buf_cstr(text), text->length);
  buf_reset(text);
  return copy;
}

/* As a part of another expression. */
static void put_part(const merged *m, char next, buf *out) {
  if ((m->shape & STEP_COLUMN) != 0 && next != '.') { /* "s".a would be a table's column */
    buf_text(out, m->text);
    return;
  }
  bool has_type = (m->shape & (STEP_TYPED | STEP_COLUMN)) != 0;
  buf_text(out, has_type ? "(" : "CAST(");
  buf_text(out, m->text);
  if (!has_type) {
    buf_text(out, " AS ");
    data_type_to_sql(m->type, out);
  }
  buf_char(out, ')');
}

/* The expression with the block's columns written into it. */
static hf_status write_merged(block *b, const relation_step *step, const step_expression *e, merged *out) {
  *out = (merged){.name = e->name, .type = e->type, .weight = e->weight, .shape = e->shape};
  if (e->text == NULL) { /* a column that a star stands for */
    *out = b->columns[e->refs[0].column];
    out->name = e->name;
    return HF_OK;
  }
  if ((e->shape & STEP_COLUMN) != 0) {
    *out = b->columns[e->refs[0].column];
    out->name = e->name;
    return HF_OK;
  }
  if ((e->shape & STEP_OPAQUE) != 0) {
    out->raw = e;
    out->raw_of = step;
    b->alias = b->alias == NULL ? step->in.alias : b->alias;
    return HF_OK;
  }
  buf text = {0};
  size_t at = e->begin;
  for (size_t i = 0; i < e->n_refs; i++) {
    const step_ref *ref = &e->refs[i];
    const merged *m = &b->columns[ref->column];
    size_t end = ref->offset + ref->length;
    buf_append(&text, e->text + at, ref->offset - at);
    put_part(m, end < e->end ? e->text[end] : ' ', &text);
    out->weight += (m->shape & STEP_COLUMN) != 0 ? 0 : m->weight + 2;
    out->shape &= (m->shape & (STEP_COLUMN | STEP_CONSTANT | STEP_CHEAP)) != 0 ? ~0U : ~(unsigned)STEP_CHEAP;
    at = end;
  }
  buf_append(&text, e->text + at, e->end - at);
  out->text = take_text(b, &text);
  return out->text == NULL ? lower_out_of_memory(b->l) : HF_OK;
}

/* ---------------------------------------------------------------------- begin */

static hf_status column_of(const block *b, size_t number, merged *out) {
  buf text = {0};
  const char *name = step_inside_name(b->below, number);
  buf_sql_name(&text, name);
  *out = (merged){.text = take_text(b, &text),
                  .name = name,
                  .type = b->below->columns->columns[number].type,
                  .number = number,
                  .weight = 1,
                  .shape = STEP_COLUMN | STEP_CHEAP | STEP_TYPED};
  return out->text == NULL ? lower_out_of_memory(b->l) : HF_OK;
}

hf_status block_begin(block *b, lowering *l, const from_item *item, const step_side *below) {
  *b = (block){.l = l, .item = *item, .below = below, .is_whole = true, .is_empty = true, .list = ""};
  size_t n = below->columns->n_columns;
  b->columns = arena_array(l->arena, n + 8, sizeof *b->columns);
  if (b->columns == NULL) {
    return lower_out_of_memory(l);
  }
  b->capacity = n + 8;
  for (size_t i = 0; i < n; i++) {
    HF_TRY(column_of(b, i, &b->columns[i]));
  }
  b->n_columns = n;
  b->shape = STEP_COLUMN;
  return HF_OK;
}

/* ---------------------------------------------------------------------- judging */

/* Whether each column is passed on by a step that is not replaced by it. */
static bool passes_on(const relation_step *step, size_t number) {
  if (step->kind == BUILD_PROJECT) {
    return false;
  }
  if (step->kind == BUILD_WITH_COLUMNS) {
    return step->places[number] == SIZE_MAX;
  }
  return true; /* what is dropped is not looked at */
}

static hf_status room_for_uses(block *b) {
  if (b->uses_capacity >= b->n_columns) {
    return HF_OK;
  }
  b->uses = arena_array(b->l->arena, b->capacity, sizeof *b->uses);
  b->uses_capacity = b->capacity;
  return b->uses == NULL ? lower_out_of_memory(b->l) : HF_OK;
}

static void count_uses(block *b, const relation_step *step, bool add) {
  for (size_t i = 0; i < step->n_expressions; i++) {
    const step_expression *e = &step->expressions[i];
    for (size_t k = 0; k < e->n_refs; k++) {
      b->uses[e->refs[k].column] = add ? b->uses[e->refs[k].column] + 1 : 0;
    }
  }
}

static size_t use_count(const block *b, const relation_step *step, size_t number) {
  return b->uses[number] + (passes_on(step, number) ? 1U : 0U);
}

static bool may_repeat(const merged *m) {
  if (FAULT("plan.random_twice")) {
    return true;
  }
  return (m->shape & (STEP_COLUMN | STEP_CONSTANT | STEP_CHEAP)) != 0 && (m->shape & STEP_VOLATILE) == 0;
}

/* Whether the column may stand in an expression instead of being read from below. */
static bool can_stand_for(const block *b, const relation_step *step, size_t number) {
  const merged *m = &b->columns[number];
  if ((m->shape & STEP_COLUMN) != 0) {
    return true;
  }
  bool is_still = (m->shape & (STEP_VOLATILE | STEP_FIXED | STEP_OPAQUE | STEP_WINDOW | STEP_ROWS)) == 0;
  is_still = is_still || FAULT("plan.random_twice");
  return is_still && (use_count(b, step, number) == 1 || may_repeat(m)) && m->type != NULL &&
         !data_type_contains(m->type, TYPE_NULL);
}

static bool can_write(const block *b, const relation_step *step, const step_expression *e) {
  size_t weight = e->weight;
  if ((e->shape & STEP_OPAQUE) != 0) {
    bool same_name = b->alias == NULL || step->in.alias == NULL || strcasecmp(b->alias, step->in.alias) == 0;
    return b->is_whole && same_name;
  }
  if ((e->shape & STEP_COLUMN) != 0) { /* it stays what it is, but once */
    size_t number = e->refs[0].column;
    return use_count(b, step, number) == 1 || may_repeat(&b->columns[number]);
  }
  for (size_t i = 0; i < e->n_refs; i++) {
    const merged *m = &b->columns[e->refs[i].column];
    weight += (m->shape & STEP_COLUMN) != 0 ? 0 : m->weight + 2;
    if (!can_stand_for(b, step, e->refs[i].column)) {
      return false;
    }
  }
  return weight <= HEAVIEST || e->weight == weight;
}

static unsigned shape_of(const relation_step *step) {
  unsigned shape = 0;
  for (size_t i = 0; i < step->n_expressions; i++) {
    shape |= step->expressions[i].shape;
  }
  return shape;
}

static bool can_add(const block *b, const relation_step *step) {
  unsigned shape = shape_of(step);
  if ((b->shape & (STEP_ROWS | STEP_STAR)) != 0) {
    return false;
  }
  if ((shape & STEP_ROWS) != 0 && (b->shape & (STEP_VOLATILE | STEP_WINDOW)) != 0) {
    return false;
  }
  if (step->kind == BUILD_FILTER) {
    bool is_calm = (shape & STEP_VOLATILE) == 0 || b->n_conditions == 0;
    bool is_last = b->n_conditions > 0 && (b->conditions[0].shape & STEP_VOLATILE) != 0;
    if ((b->shape & STEP_WINDOW) != 0 || !is_calm || is_last ||
        b->n_conditions + step->n_expressions > MOST_CONDITIONS) {
      return false;
    }
  }
  for (size_t i = 0; i < step->n_expressions; i++) {
    if (!can_write(b, step, &step->expressions[i])) {
      return false;
    }
  }
  return true;
}

/* ------------------------------------------------------------------------ adding */

/* The list of columns that comes to be. */
static hf_status spare_list(block *b, size_t room, merged **out) {
  if (b->spare_capacity < room) {
    b->spare = arena_array(b->l->arena, room + room / 2 + 8, sizeof *b->spare);
    b->spare_capacity = room + room / 2 + 8;
  }
  *out = b->spare;
  return b->spare == NULL ? lower_out_of_memory(b->l) : HF_OK;
}

static void use_spare(block *b, size_t n) {
  merged *columns = b->columns;
  size_t capacity = b->capacity;
  b->columns = b->spare;
  b->capacity = b->spare_capacity;
  b->n_columns = n;
  b->spare = columns;
  b->spare_capacity = capacity;
}

static void note_shape(block *b) {
  unsigned shape = 0;
  bool whole = b->n_columns == b->below->columns->n_columns;
  for (size_t i = 0; i < b->n_columns; i++) {
    const merged *m = &b->columns[i];
    shape |= m->shape;
    whole = whole && (m->shape & STEP_COLUMN) != 0 && m->number == i &&
            (m->name == NULL || strcmp(m->name, step_inside_name(b->below, i)) == 0);
  }
  b->shape = shape;
  b->is_whole = whole;
}

/* What the column is called: as the next step knows it. */
static const char *name_in(const relation_step *step, size_t number, const char *otherwise) {
  return step->out.columns == NULL ? otherwise : step_inside_name(&step->out, number);
}

static hf_status add_filter(block *b, const relation_step *step) {
  for (size_t i = 0; i < step->n_expressions; i++) {
    merged m;
    if (!lower_grow(b->l->arena, (void **)&b->conditions, b->n_conditions, &b->conditions_capacity,
                    sizeof *b->conditions)) {
      return lower_out_of_memory(b->l);
    }
    HF_TRY(write_merged(b, step, &step->expressions[i], &m));
    b->conditions[b->n_conditions++] = m;
  }
  return HF_OK;
}

/* For what the SELECT itself cannot name. */
static hf_status list_inside_names(block *b, const step_side *side) {
  buf text = {0};
  for (size_t i = 0; i < side->columns->n_columns; i++) {
    buf_text(&text, i == 0 ? "(" : ", ");
    buf_sql_name(&text, side->inside[i]);
  }
  buf_char(&text, ')');
  b->list = take_text(b, &text);
  return b->list == NULL ? lower_out_of_memory(b->l) : HF_OK;
}

static hf_status add_project(block *b, const relation_step *step) {
  merged *list = NULL;
  HF_TRY(spare_list(b, step->n_expressions, &list));
  size_t number = 0;
  for (size_t i = 0; i < step->n_expressions; i++) {
    const step_expression *e = &step->expressions[i];
    HF_TRY(write_merged(b, step, e, &list[i]));
    bool is_star = (e->shape & STEP_STAR) != 0;
    list[i].name = is_star ? NULL : name_in(step, number, e->name);
    number += is_star && e->many != NULL ? e->many->n_columns : 1;
  }
  use_spare(b, step->n_expressions);
  bool needs_list = (shape_of(step) & STEP_STAR) != 0 && step->out.inside != NULL;
  return needs_list ? list_inside_names(b, &step->out) : HF_OK;
}

/* In place: a chain of new columns must not copy what is there at each. */
static hf_status add_with_columns(block *b, const relation_step *step) {
  size_t n_new = step->n_expressions;
  merged *made = arena_array(b->l->arena, n_new, sizeof *made);
  if (made == NULL) {
    return lower_out_of_memory(b->l);
  }
  for (size_t i = 0; i < n_new; i++) {
    HF_TRY(write_merged(b, step, &step->expressions[i], &made[i]));
  }
  for (size_t i = 0; i < step->n_places; i++) {
    if (step->places[i] == SIZE_MAX) {
      continue;
    }
    while (b->n_columns <= i) {
      if (!lower_grow(b->l->arena, (void **)&b->columns, b->n_columns, &b->capacity, sizeof *b->columns)) {
        return lower_out_of_memory(b->l);
      }
      b->n_columns++;
    }
    b->columns[i] = made[step->places[i]];
    b->columns[i].name = name_in(step, i, step->expressions[step->places[i]].name);
  }
  return HF_OK;
}

static hf_status add_kept(block *b, const relation_step *step) {
  merged *list = NULL;
  HF_TRY(spare_list(b, step->n_kept, &list));
  for (size_t i = 0; i < step->n_kept; i++) {
    list[i] = b->columns[step->kept[i]];
    list[i].name = name_in(step, i, list[i].name);
  }
  use_spare(b, step->n_kept);
  return HF_OK;
}

/* Names of columns may change where another column of the same name goes. */
static void name_columns(block *b, const relation_step *step) {
  bool fits = step->out.columns != NULL && step->out.columns->n_columns == b->n_columns;
  if (fits && (step->in.inside != NULL || step->out.inside != NULL)) {
    for (size_t i = 0; i < b->n_columns; i++) {
      b->columns[i].name = step_inside_name(&step->out, i);
    }
  }
}

hf_status block_add(block *b, const relation_step *step, bool *added) {
  HF_TRY(room_for_uses(b));
  count_uses(b, step, true);
  *added = b->is_empty || can_add(b, step);
  count_uses(b, step, false);
  if (!*added) {
    return HF_OK;
  }
  b->is_empty = false;
  switch (step->kind) {
    case BUILD_FILTER:
      return add_filter(b, step);
    case BUILD_PROJECT:
      HF_TRY(add_project(b, step));
      break;
    case BUILD_WITH_COLUMNS:
      HF_TRY(add_with_columns(b, step));
      break;
    default:
      HF_TRY(add_kept(b, step));
  }
  name_columns(b, step);
  note_shape(b);
  return HF_OK;
}

/* ----------------------------------------------------------------------- writing */

static hf_status put_name(lowering *l, piece_list *out, const char *name) {
  buf text = {0};
  buf_sql_name(&text, name);
  hf_status status = text.failed ? lower_out_of_memory(l) : lower_put(l, out, buf_cstr(&text));
  buf_reset(&text);
  return status;
}

hf_status block_put_item(lowering *l, piece_list *out, const from_item *item, const step_side *columns,
                         const char *side) {
  bool renames = item->is_base && columns->inside != NULL;
  const char *alias = side != NULL ? side : renames ? "hf_base" : NULL;
  HF_TRY(item->name != NULL ? lower_put(l, out, item->name) : lower_put_input(l, out, item->input));
  if (alias != NULL) {
    HF_TRY(lower_put(l, out, " AS "));
    HF_TRY(put_name(l, out, alias));
  }
  for (size_t i = 0; renames && i < columns->columns->n_columns; i++) {
    HF_TRY(lower_put(l, out, i == 0 ? "(" : ", "));
    HF_TRY(put_name(l, out, columns->inside[i]));
  }
  return lower_put(l, out, renames ? ")" : "");
}

static hf_status put_range(lowering *l, piece_list *out, const step_expression *e, size_t from, size_t to) {
  return lower_put_text(l, out, e->text + from, to - from, -1);
}

static hf_status put_below(lowering *l, piece_list *out, const relation_step *step,
                           const char *const sides[2], size_t number) {
  buf text = {0};
  step_put_column(step, sides, number, &text);
  hf_status status = text.failed ? lower_out_of_memory(l) : lower_put(l, out, buf_cstr(&text));
  buf_reset(&text);
  return status;
}

hf_status block_put_raw(lowering *l, piece_list *out, const relation_step *step, const char *const sides[2],
                        const step_expression *e) {
  size_t at = e->begin, ref = 0, spot = 0;
  for (;;) {
    size_t next_ref = ref < e->n_refs && e->refs[ref].length > 0 ? e->refs[ref].offset : SIZE_MAX;
    size_t next_spot = spot < e->n_spots ? e->spots[spot].offset : SIZE_MAX;
    if (next_ref == SIZE_MAX && next_spot == SIZE_MAX) {
      return put_range(l, out, e, at, e->end);
    }
    size_t next = next_ref < next_spot ? next_ref : next_spot;
    HF_TRY(put_range(l, out, e, at, next));
    if (next == next_ref) {
      HF_TRY(put_below(l, out, step, sides, e->refs[ref].column));
      at = next + e->refs[ref++].length;
    } else {
      HF_TRY(lower_put_spot(l, out, e->text, &e->spots[spot]));
      at = next + e->spots[spot++].length;
    }
  }
}

static hf_status put_merged(const block *b, piece_list *out, const merged *m, bool in_parentheses) {
  const char *sides[2] = {b->alias, NULL};
  bool is_bare = !in_parentheses || (m->shape & STEP_COLUMN) != 0;
  HF_TRY(lower_put(b->l, out, is_bare ? "" : "("));
  HF_TRY(m->text != NULL ? lower_put(b->l, out, m->text)
                         : block_put_raw(b->l, out, m->raw_of, sides, m->raw));
  return lower_put(b->l, out, is_bare ? "" : ")");
}

hf_status block_write(const block *b, piece_list *out) {
  HF_TRY(lower_put(b->l, out, b->is_whole ? "SELECT *" : "SELECT "));
  for (size_t i = 0; !b->is_whole && i < b->n_columns; i++) {
    const merged *m = &b->columns[i];
    HF_TRY(lower_put(b->l, out, i == 0 ? "" : ", "));
    HF_TRY(put_merged(b, out, m, (m->shape & STEP_STAR) == 0));
    if (m->name != NULL) {
      HF_TRY(lower_put(b->l, out, " AS "));
      HF_TRY(put_name(b->l, out, m->name));
    }
  }
  HF_TRY(lower_put(b->l, out, " FROM "));
  HF_TRY(block_put_item(b->l, out, &b->item, b->below, b->alias));
  for (size_t i = 0; i < b->n_conditions; i++) {
    HF_TRY(lower_put(b->l, out, i == 0 ? " WHERE " : " AND "));
    HF_TRY(put_merged(b, out, &b->conditions[i], true));
  }
  return HF_OK;
}
