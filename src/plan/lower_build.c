/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowering built relations: each step becomes a query over what is below it in
 * the chain of common table expressions.
 */
#include "plan/lower_internal.h"

#include <stdio.h>
#include <string.h>

/* What a step reads: a name in the chain, or an input. */
typedef struct from_item {
  const char *name; /* NULL: an input */
  uint32_t input;
  bool is_base; /* its columns have the names that it has by itself */
} from_item;

/* A step that is being written. */
typedef struct writing {
  lowering *l;
  piece_list *out;
  const relation_step *step;
  from_item items[2];
  const char *sides[2];
} writing;

static hf_status put(const writing *w, const char *text) {
  return lower_put(w->l, w->out, text);
}

static hf_status put_name(const writing *w, const char *name) {
  buf text = {0};
  buf_sql_name(&text, name);
  hf_status status = text.failed ? lower_out_of_memory(w->l) : put(w, buf_cstr(&text));
  buf_reset(&text);
  return status;
}

static hf_status put_column(const writing *w, size_t number) {
  buf text = {0};
  step_put_column(w->step, w->sides, number, &text);
  hf_status status = text.failed ? lower_out_of_memory(w->l) : put(w, buf_cstr(&text));
  buf_reset(&text);
  return status;
}

static const step_side *side_of(const writing *w, size_t side) {
  return side == 0 ? &w->step->in : &w->step->other;
}

/* ------------------------------------------------------------------- FROM */

static hf_status put_item(const writing *w, size_t side) {
  const from_item *item = &w->items[side];
  const step_side *columns = side_of(w, side);
  bool renames = item->is_base && columns->inside != NULL;
  const char *alias = w->sides[side] != NULL ? w->sides[side] : renames ? "hf_base" : NULL;
  HF_TRY(item->name != NULL ? put(w, item->name) : lower_put_input(w->l, w->out, item->input));
  if (alias != NULL) {
    HF_TRY(put(w, " AS "));
    HF_TRY(put_name(w, alias));
  }
  for (size_t i = 0; renames && i < columns->columns->n_columns; i++) {
    HF_TRY(put(w, i == 0 ? "(" : ", "));
    HF_TRY(put_name(w, columns->inside[i]));
  }
  return put(w, renames ? ")" : "");
}

static hf_status put_from(const writing *w) {
  HF_TRY(put(w, " FROM "));
  return put_item(w, 0);
}

/* ------------------------------------------------------------- expressions */

static hf_status put_range(const writing *w, const step_expression *e, size_t from, size_t to) {
  return lower_put_text(w->l, w->out, e->text + from, to - from, -1);
}

/* The text, with its columns by their names inside and its spots by what they stand for. */
static hf_status put_text(const writing *w, const step_expression *e) {
  size_t at = e->begin, ref = 0, spot = 0;
  for (;;) {
    size_t next_ref = ref < e->n_refs && e->refs[ref].length > 0 ? e->refs[ref].offset : SIZE_MAX;
    size_t next_spot = spot < e->n_spots ? e->spots[spot].offset : SIZE_MAX;
    if (next_ref == SIZE_MAX && next_spot == SIZE_MAX) {
      return put_range(w, e, at, e->end);
    }
    size_t next = next_ref < next_spot ? next_ref : next_spot;
    HF_TRY(put_range(w, e, at, next));
    if (next == next_ref) {
      HF_TRY(put_column(w, e->refs[ref].column));
      at = next + e->refs[ref++].length;
    } else {
      HF_TRY(lower_put_spot(w->l, w->out, e->text, &e->spots[spot]));
      at = next + e->spots[spot++].length;
    }
  }
}

static hf_status put_expression(const writing *w, const step_expression *e) {
  bool is_bare = (e->shape & STEP_STAR) != 0;
  if (e->text == NULL) {
    return put_column(w, e->refs[0].column);
  }
  HF_TRY(put(w, is_bare ? "" : "("));
  HF_TRY(put_text(w, e));
  return put(w, is_bare ? "" : ")");
}

static hf_status put_list(const writing *w, const step_expression *list, size_t n, const char *between) {
  for (size_t i = 0; i < n; i++) {
    HF_TRY(put(w, i == 0 ? "" : between));
    HF_TRY(put_expression(w, &list[i]));
    HF_TRY(put(w, list[i].order));
  }
  return HF_OK;
}

static hf_status put_as(const writing *w, size_t out_column) {
  if (w->step->out.columns == NULL) { /* what it is called is what is being asked */
    return HF_OK;
  }
  HF_TRY(put(w, " AS "));
  return put_name(w, step_inside_name(&w->step->out, out_column));
}

/* Expressions as columns. *number: of the result; counts on. */
static hf_status put_selected(const writing *w, const step_expression *list, size_t n, size_t *number) {
  for (size_t i = 0; i < n; i++) {
    const step_expression *e = &list[i];
    HF_TRY(put(w, *number == 0 && i == 0 ? "" : ", "));
    HF_TRY(put_expression(w, e));
    if ((e->shape & STEP_STAR) != 0) {
      *number += e->many == NULL ? 1 : e->many->n_columns;
      continue;
    }
    if (w->step->out.columns == NULL && e->name != NULL) {
      HF_TRY(put(w, " AS "));
      HF_TRY(put_name(w, e->name));
    }
    HF_TRY(put_as(w, *number));
    (*number)++;
  }
  return HF_OK;
}

/* --------------------------------------------------------------------- kinds */

static hf_status write_project(const writing *w) {
  size_t number = 0;
  HF_TRY(put(w, "SELECT "));
  HF_TRY(put_selected(w, w->step->expressions, w->step->n_expressions, &number));
  return put_from(w);
}

static hf_status write_with_columns(const writing *w) {
  const relation_step *step = w->step;
  HF_TRY(put(w, "SELECT "));
  for (size_t i = 0; i < step->n_places; i++) {
    HF_TRY(put(w, i == 0 ? "" : ", "));
    size_t place = step->places[i];
    HF_TRY(place == SIZE_MAX ? put_column(w, i) : put_expression(w, &step->expressions[place]));
    if (step->out.columns != NULL) {
      HF_TRY(put_as(w, i));
      continue;
    }
    HF_TRY(put(w, " AS "));
    HF_TRY(put_name(w, place == SIZE_MAX ? step_inside_name(&step->in, i) : step->expressions[place].name));
  }
  return put_from(w);
}

static hf_status write_kept(const writing *w) {
  const relation_step *step = w->step;
  HF_TRY(put(w, "SELECT "));
  for (size_t i = 0; i < step->n_kept; i++) {
    HF_TRY(put(w, i == 0 ? "" : ", "));
    HF_TRY(put_column(w, step->kept[i]));
    HF_TRY(put_as(w, i));
  }
  return put_from(w);
}

static hf_status write_filter(const writing *w) {
  HF_TRY(put(w, "SELECT *"));
  HF_TRY(put_from(w));
  HF_TRY(put(w, " WHERE "));
  return put_list(w, w->step->expressions, w->step->n_expressions, " AND ");
}

static hf_status write_sort(const writing *w) {
  HF_TRY(put(w, "SELECT *"));
  HF_TRY(put_from(w));
  HF_TRY(put(w, " ORDER BY "));
  return put_list(w, w->step->expressions, w->step->n_expressions, ", ");
}

static hf_status write_distinct(const writing *w) {
  HF_TRY(put(w, "SELECT DISTINCT "));
  if (w->step->n_expressions > 0) {
    HF_TRY(put(w, "ON ("));
    HF_TRY(put_list(w, w->step->expressions, w->step->n_expressions, ", "));
    HF_TRY(put(w, ") "));
  }
  HF_TRY(put(w, "*"));
  return put_from(w);
}

static hf_status write_limit(const writing *w) {
  char text[80];
  HF_TRY(put(w, "SELECT *"));
  HF_TRY(put_from(w));
  if (w->step->has_limit) {
    snprintf(text, sizeof text, " LIMIT %llu", (unsigned long long)w->step->limit);
    HF_TRY(put(w, text));
  }
  if (w->step->offset > 0) {
    snprintf(text, sizeof text, " OFFSET %llu", (unsigned long long)w->step->offset);
    HF_TRY(put(w, text));
  }
  return HF_OK;
}

static hf_status write_aggregate(const writing *w) {
  const relation_step *step = w->step;
  size_t number = 0;
  HF_TRY(put(w, "SELECT "));
  HF_TRY(put_selected(w, step->groups, step->n_groups, &number));
  HF_TRY(put_selected(w, step->expressions, step->n_expressions, &number));
  HF_TRY(put_from(w));
  HF_TRY(put(w, step->n_groups == 0 ? " GROUP BY ()" : " GROUP BY "));
  return put_list(w, step->groups, step->n_groups, ", ");
}

static hf_status write_using(const writing *w, bool is_condition, size_t key) {
  buf text = {0};
  if (is_condition) {
    step_put_using_condition(w->step, w->sides, &text);
  } else {
    step_put_using(w->step, w->sides, key, &text);
  }
  hf_status status = text.failed ? lower_out_of_memory(w->l) : put(w, buf_cstr(&text));
  buf_reset(&text);
  return status;
}

static hf_status write_join(const writing *w) {
  const relation_step *step = w->step;
  bool is_cross = step->n_using + step->n_expressions == 0;
  HF_TRY(put(w, "SELECT "));
  for (size_t i = 0; i < step->n_kept; i++) {
    HF_TRY(put(w, i == 0 ? "" : ", "));
    HF_TRY(i < step->n_using ? write_using(w, false, i) : put_column(w, step->kept[i]));
    HF_TRY(put_as(w, i));
  }
  HF_TRY(put_from(w));
  HF_TRY(put(w, step_join_word(is_cross ? JOIN_TYPE_CROSS : step->join)));
  HF_TRY(put_item(w, 1));
  if (is_cross) {
    return HF_OK;
  }
  HF_TRY(put(w, " ON "));
  return step->n_using > 0 ? write_using(w, true, 0)
                           : put_list(w, step->expressions, step->n_expressions, " AND ");
}

static hf_status write_set(const writing *w) {
  HF_TRY(put(w, "SELECT *"));
  HF_TRY(put_from(w));
  HF_TRY(put(w, step_set_words(w->step)));
  HF_TRY(put(w, "SELECT * FROM "));
  return put_item(w, 1);
}

static hf_status write_step(const writing *w) {
  static hf_status (*const kinds[])(const writing *) = {
      [BUILD_PROJECT] = write_project,
      [BUILD_FILTER] = write_filter,
      [BUILD_WITH_COLUMNS] = write_with_columns,
      [BUILD_RENAME] = write_kept,
      [BUILD_DROP] = write_kept,
      [BUILD_AGGREGATE] = write_aggregate,
      [BUILD_JOIN] = write_join,
      [BUILD_SORT] = write_sort,
      [BUILD_LIMIT] = write_limit,
      [BUILD_SET] = write_set,
      [BUILD_DISTINCT] = write_distinct,
  };
  return kinds[w->step->kind](w);
}

/* --------------------------------------------------------------------- chain */

/* The steps down to what is not built, outermost first. */
static hf_status collect(lowering *l, const relation *r, const relation ***out, size_t *n, held_info *info) {
  const relation **steps = NULL;
  size_t capacity = 0;
  *n = 0;
  for (;; r = r->view.input) {
    r = lower_skip_inline(l, r, info);
    if (!lower_grow(l->arena, (void **)&steps, *n, &capacity, sizeof(void *))) {
      return lower_out_of_memory(l);
    }
    steps[(*n)++] = r;
    if (r->view.kind != RELATION_BUILT) {
      *out = steps;
      return HF_OK;
    }
  }
}

static hf_status base_item(lowering *l, const relation *r, const held_info *info, from_item *out) {
  *out = (from_item){.is_base = true};
  if (lower_is_text(r)) {
    return lower_use_relation(l, r, "input", &out->name);
  }
  lower_input input;
  HF_TRY(lower_input_of(l, r, info, "", &input));
  return lower_input_number(l, &input, &out->input);
}

static hf_status other_item(lowering *l, const relation *r, from_item *out);

static hf_status write_relation(lowering *l, piece_list *out, const relation *r, const from_item *in) {
  writing w = {.l = l, .out = out, .step = r->view.step, .items = {*in}};
  step_side_names(w.step, w.sides);
  if (r->view.other != NULL) {
    HF_TRY(other_item(l, r->view.other, &w.items[1]));
  }
  return write_step(&w);
}

/* Takes what was written into the chain. */
static hf_status end_body(lowering *l, piece_list *body, from_item *out) {
  *out = (from_item){.is_base = false};
  return lower_put_use(l, body, "step", "", &out->name);
}

static hf_status write_chain(lowering *l, piece_list *out, const relation *r, bool as_query,
                             from_item *item) {
  const relation **steps = NULL;
  size_t n = 0;
  held_info info;
  HF_TRY(collect(l, r, &steps, &n, &info));
  HF_TRY(base_item(l, steps[n - 1], &info, item));
  size_t last = 0;
  while (last + 1 < n && steps[last]->view.step->kind == BUILD_ALIAS) {
    last++;
  }
  for (size_t i = n - 1; i-- > last;) {
    if (steps[i]->view.step->kind == BUILD_ALIAS) {
      continue;
    }
    HF_TRY(write_relation(l, out, steps[i], item));
    if (i > last || !as_query) {
      HF_TRY(end_body(l, out, item));
    }
  }
  if (as_query && last == n - 1) { /* nothing but aliases */
    writing w = {.l = l, .out = out, .step = steps[n - 2]->view.step, .items = {*item}};
    HF_TRY(lower_put(l, out, "SELECT *"));
    return put_from(&w);
  }
  return HF_OK;
}

static hf_status other_item(lowering *l, const relation *r, from_item *out) {
  held_info info;
  const relation *below = lower_skip_inline(l, r, &info);
  if (below->view.kind != RELATION_BUILT) {
    return base_item(l, below, &info, out);
  }
  piece_list body = {0};
  hf_status status = write_chain(l, &body, below, false, out);
  buf_reset(&body.run);
  return status;
}

hf_status lower_built(lowering *l, piece_list *out, const relation *r) {
  from_item item;
  return write_chain(l, out, r, true, &item);
}
