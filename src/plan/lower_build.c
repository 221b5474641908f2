/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowering built relations: adjacent projections and filters become one query
 * (block.c), every other step one of its own, over what is below it in the chain
 * of common table expressions. A chain of steps is walked, not recursed into.
 */
#include "plan/block.h"

#include <stdio.h>
#include <string.h>

/* A step that is being written. */
typedef struct writing {
  lowering *l;
  piece_list *out;
  const relation_step *step;
  from_item items[2];
  const char *sides[2];
  bool is_ordered; /* what the step reads */
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

static hf_status put_item(const writing *w, size_t side) {
  return block_put_item(w->l, w->out, &w->items[side], side_of(w, side), w->sides[side]);
}

static hf_status put_from(const writing *w) {
  HF_TRY(put(w, " FROM "));
  return put_item(w, 0);
}

/* ------------------------------------------------------------- expressions */

static hf_status put_expression(const writing *w, const step_expression *e) {
  bool is_bare = (e->shape & STEP_STAR) != 0;
  HF_TRY(put(w, is_bare ? "" : "("));
  HF_TRY(block_put_raw(w->l, w->out, w->step, w->sides, e));
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

static hf_status write_sort(const writing *w) {
  HF_TRY(put(w, "SELECT *"));
  HF_TRY(put_from(w));
  HF_TRY(put(w, " ORDER BY "));
  return put_list(w, w->step->expressions, w->step->n_expressions, ", ");
}

/* By keys over ordered rows the order is the DISTINCT's own: else DuckDB moves a filter on top of it below it, where
 * other rows are first. */
static hf_status write_distinct(const writing *w) {
  HF_TRY(put(w, "SELECT DISTINCT "));
  if (w->step->n_expressions > 0) {
    HF_TRY(put(w, "ON ("));
    HF_TRY(put_list(w, w->step->expressions, w->step->n_expressions, ", "));
    HF_TRY(put(w, ") "));
  }
  HF_TRY(put(w, "*"));
  HF_TRY(put_from(w));
  return put(w, w->step->n_expressions > 0 && w->is_ordered ? " ORDER BY row_number() OVER ()" : "");
}

static hf_status put_limit(const writing *w) {
  char text[80];
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

static hf_status write_limit(const writing *w) {
  HF_TRY(put(w, "SELECT *"));
  HF_TRY(put_from(w));
  return put_limit(w);
}

/* By position: DuckDB does not find a group again that holds a sub-select of the row. */
static hf_status put_group_by(const writing *w, size_t n) {
  char text[40] = " GROUP BY ()";
  HF_TRY(n == 0 ? put(w, text) : HF_OK);
  for (size_t i = 1; i <= n; i++) {
    snprintf(text, sizeof text, "%s%zu", i == 1 ? " GROUP BY " : ", ", i);
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
  return put_group_by(w, step->n_groups);
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
      [BUILD_AGGREGATE] = write_aggregate, [BUILD_JOIN] = write_join, [BUILD_SORT] = write_sort,
      [BUILD_LIMIT] = write_limit,         [BUILD_SET] = write_set,   [BUILD_DISTINCT] = write_distinct,
  };
  return kinds[w->step->kind](w);
}

/* --------------------------------------------------------------------- chain */

/* A chain of steps that is being written. `out` holds what is not in the chain yet, unless it is in `open`. */
typedef struct walking {
  lowering *l;
  piece_list *out;
  from_item item;  /* what the next step reads; when nothing is pending */
  bool is_pending; /* `out` holds a query */
  block open;
  bool has_block;
} walking;

/* A step that is no query: of an alias the next step knows, a repartition is for who holds the rows. */
static bool is_silent(const relation *r) {
  return r->view.kind == RELATION_BUILT &&
         (r->view.step->kind == BUILD_ALIAS || r->view.step->kind == BUILD_REPARTITION);
}

/* The steps down to what is not built, outermost first, but for those that are no query. */
static hf_status collect(lowering *l, const relation *r, const relation ***out, size_t *n, held_info *info) {
  const relation **steps = NULL;
  size_t capacity = 0;
  *n = 0;
  for (;; r = r->view.input) {
    r = lower_skip_inline(l, r, info);
    if (is_silent(r)) {
      continue;
    }
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

/* Takes what was written into the chain, so that the next step can read it. */
static hf_status settle(walking *w) {
  const char *list = "";
  if (w->has_block) {
    HF_TRY(block_write(&w->open, w->out));
    list = w->open.list;
    w->has_block = false;
    w->is_pending = true;
  }
  if (!w->is_pending) {
    return HF_OK;
  }
  w->is_pending = false;
  w->item = (from_item){.is_base = false};
  HF_TRY(lower_count_bytes(w->l, w->out));
  return lower_put_use(w->l, w->out, "input", list, &w->item.name);
}

static hf_status add_to_block(walking *w, const relation_step *step) {
  bool added = false;
  if (w->has_block) {
    HF_TRY(block_add(&w->open, step, &added));
  }
  if (added) {
    return HF_OK;
  }
  HF_TRY(settle(w));
  HF_TRY(block_begin(&w->open, w->l, &w->item, &step->in));
  w->has_block = true;
  return block_add(&w->open, step, &added);
}

static hf_status other_item(lowering *l, const relation *r, from_item *out);

static hf_status write_alone(walking *w, const relation *r) {
  HF_TRY(settle(w));
  writing one = {.l = w->l, .out = w->out, .step = r->view.step, .items = {w->item}};
  one.is_ordered = r->view.input->view.top_ordered;
  step_side_names(one.step, one.sides);
  if (r->view.other != NULL) {
    HF_TRY(other_item(w->l, r->view.other, &one.items[1]));
  }
  w->is_pending = true;
  return write_step(&one);
}

/* ORDER BY and LIMIT of adjacent steps stand in one query. */
static bool is_limit_of_order(const relation *const *steps, size_t i, size_t n) {
  return steps[i]->view.step->kind == BUILD_LIMIT && i + 2 < n && steps[i + 1]->view.step->kind == BUILD_SORT;
}

static hf_status walk_steps(walking *w, const relation *r) {
  const relation **steps = NULL;
  size_t n = 0;
  held_info info;
  HF_TRY(collect(w->l, r, &steps, &n, &info));
  HF_TRY(base_item(w->l, steps[n - 1], &info, &w->item));
  for (size_t i = n - 1; i-- > 0;) {
    const relation_step *step = steps[i]->view.step;
    if (block_takes_kind(step->kind)) {
      HF_TRY(add_to_block(w, step));
    } else if (is_limit_of_order(steps, i, n)) {
      writing one = {.l = w->l, .out = w->out, .step = step};
      HF_TRY(put_limit(&one));
    } else {
      HF_TRY(write_alone(w, steps[i]));
    }
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
  walking w = {.l = l, .out = &body};
  hf_status status = walk_steps(&w, below);
  if (status == HF_OK) {
    status = settle(&w);
  }
  buf_reset(&body.run);
  *out = w.item;
  return status;
}

hf_status lower_built(lowering *l, piece_list *out, const relation *r) {
  walking w = {.l = l, .out = out};
  HF_TRY(walk_steps(&w, r));
  if (w.has_block) {
    return block_write(&w.open, out);
  }
  if (w.is_pending) {
    return HF_OK;
  }
  HF_TRY(lower_put(l, out, "SELECT * FROM ")); /* no step that is a query */
  return block_put_item(l, out, &w.item, &r->view.step->in, NULL);
}

/* Counting is done when the bound says so, not at each step. */
hf_status plan_build(engine *planner, const build_step *step, const relation_names *names, relation **out,
                     hf_error *error) {
  relation *built = NULL;
  HF_TRY(relation_build(planner, step, names, &built, error));
  if (built->queries > RELATION_MOST_QUERIES) {
    hf_status status = lower_count(built, &built->queries, error);
    if (status != HF_OK) {
      relation_release(built);
      return status;
    }
    built->queries++;
  }
  *out = built;
  return HF_OK;
}
