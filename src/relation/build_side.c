/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What expressions of a step see, and what its inputs and columns are called in
 * lowered text: a name that is not the only one of its kind gets another, which
 * only lowered text shows.
 * Thread: any; making belongs to one.
 */
#include "relation/build_internal.h"

#include "base/nearest.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *step_inside_name(const step_side *side, size_t number) {
  return side->inside == NULL ? side->columns->columns[number].name : side->inside[number];
}

const char *step_label(const step_side *side, size_t number) {
  return side->labels == NULL ? side->alias : side->labels[number];
}

size_t step_find_column(const schema *columns, const char *name, bool *several) {
  size_t found = SIZE_MAX;
  *several = false;
  for (size_t i = 0; i < columns->n_columns; i++) {
    if (strcasecmp(columns->columns[i].name, name) == 0) {
      *several = *several || found != SIZE_MAX;
      found = found == SIZE_MAX ? i : found;
    }
  }
  return found;
}

/* The first few, when none is near. */
static void hint_columns(const schema *columns, hf_error *error) {
  buf names = {0};
  for (size_t i = 0; i < columns->n_columns && i < 8; i++) {
    buf_printf(&names, "%s\"%.64s\"", i == 0 ? "" : ", ", columns->columns[i].name);
  }
  error_hint(error, "the columns are %s%s", buf_cstr(&names), columns->n_columns > 8 ? ", …" : "");
  buf_reset(&names);
}

hf_status build_column_missing(const step_maker *m, const step_side *side, const char *name) {
  nearest near = nearest_to(name);
  for (size_t i = 0; i < side->columns->n_columns; i++) {
    nearest_offer(&near, side->columns->columns[i].name);
  }
  error_set(m->error, HF_E_COLUMN_NOT_FOUND, "no column has this name: %.200s", name);
  if (near.best != NULL) {
    error_hint(m->error, "did you mean \"%s\"?", near.best);
  } else {
    hint_columns(side->columns, m->error);
  }
  return HF_E_COLUMN_NOT_FOUND;
}

/* -------------------------------------------------------------- inside names */

static int compare_names(const void *a, const void *b) {
  return strcasecmp((*(const column *const *)a)->name, (*(const column *const *)b)->name);
}

/* Columns by name; NULL for lack of memory. */
static const column **sort_columns(const step_maker *m, const schema *columns) {
  const column **sorted = arena_array(m->scratch, columns->n_columns + 1, sizeof(void *));
  for (size_t i = 0; sorted != NULL && i < columns->n_columns; i++) {
    sorted[i] = &columns->columns[i];
  }
  if (sorted != NULL && columns->n_columns > 0) {
    qsort(sorted, columns->n_columns, sizeof(void *), compare_names);
  }
  return sorted;
}

static const char *make_name(const step_maker *m, const step_side *side, size_t number) {
  const char *name = arena_printf(m->arena, "%s:%zu", side->columns->columns[number].name, number);
  bool several = false;
  while (name != NULL && step_find_column(side->columns, name, &several) != SIZE_MAX) {
    name = arena_printf(m->arena, "%s:", name);
  }
  return name;
}

hf_status build_inside_names(const step_maker *m, step_side *side) {
  size_t n = side->columns->n_columns;
  const column **sorted = sort_columns(m, side->columns);
  const char **inside = NULL;
  if (sorted == NULL) {
    return build_out_of_memory(m);
  }
  side->inside = NULL;
  for (size_t i = 0; i < n; i++) {
    bool is_odd = sorted[i]->name[0] == '\0' || (i > 0 && compare_names(&sorted[i], &sorted[i - 1]) == 0) ||
                  (i + 1 < n && compare_names(&sorted[i], &sorted[i + 1]) == 0);
    if (!is_odd) {
      continue;
    }
    if (inside == NULL) {
      inside = arena_array(m->arena, n, sizeof(char *));
      for (size_t k = 0; inside != NULL && k < n; k++) {
        inside[k] = side->columns->columns[k].name;
      }
    }
    size_t number = (size_t)(sorted[i] - side->columns->columns);
    if (inside == NULL || (inside[number] = make_name(m, side, number)) == NULL) {
      return build_out_of_memory(m);
    }
  }
  side->inside = inside;
  return HF_OK;
}

hf_status build_side(const step_maker *m, const relation *r, const schema *columns, step_side *out) {
  if (r->view.kind == RELATION_BUILT && r->view.step->out.columns != NULL) {
    *out = r->view.step->out;
    return HF_OK;
  }
  schema *copy = arena_alloc(m->arena, sizeof *copy);
  if (columns == NULL) {
    return error_set(m->error, HF_E_INTERNAL, "a step is built over columns that are not known");
  }
  if (copy == NULL) {
    return build_out_of_memory(m);
  }
  HF_TRY(schema_copy(columns, m->arena, copy, m->error));
  *out = (step_side){.columns = copy};
  return build_inside_names(m, out);
}

/* ---------------------------------------------------------------------- text */

void step_side_names(const relation_step *step, const char *out[2]) {
  bool is_pair = step->other.columns != NULL;
  out[0] = step->in.alias;
  out[1] = NULL;
  if (!is_pair) {
    return;
  }
  bool clash = step->in.alias != NULL && step->other.alias != NULL &&
               strcasecmp(step->in.alias, step->other.alias) == 0;
  out[0] = step->in.alias == NULL || clash ? "hf_left" : step->in.alias;
  out[1] = step->other.alias == NULL || clash ? "hf_right" : step->other.alias;
}

void step_put_column(const relation_step *step, const char *const sides[2], size_t number, buf *out) {
  size_t n_in = step->in.columns->n_columns;
  size_t side = number < n_in ? 0 : 1;
  if (sides[1] != NULL) {
    buf_sql_name(out, sides[side]);
    buf_char(out, '.');
  }
  buf_sql_name(out, side == 0 ? step_inside_name(&step->in, number)
                              : step_inside_name(&step->other, number - n_in));
}

void step_put_using(const relation_step *step, const char *const sides[2], size_t key, buf *out) {
  size_t left = step->using_columns[key];
  size_t right = step->in.columns->n_columns + step->using_columns[step->n_using + key];
  bool is_full = step->join == JOIN_TYPE_FULL;
  buf_text(out, is_full ? "coalesce(" : "");
  if (step->join != JOIN_TYPE_RIGHT) {
    step_put_column(step, sides, left, out);
  }
  buf_text(out, is_full ? ", " : "");
  if (is_full || step->join == JOIN_TYPE_RIGHT) {
    step_put_column(step, sides, right, out);
  }
  buf_text(out, is_full ? ")" : "");
}

void step_put_using_condition(const relation_step *step, const char *const sides[2], buf *out) {
  for (size_t i = 0; i < step->n_using; i++) {
    buf_text(out, i == 0 ? "" : " AND ");
    step_put_column(step, sides, step->using_columns[i], out);
    buf_text(out, " = ");
    step_put_column(step, sides, step->in.columns->n_columns + step->using_columns[step->n_using + i], out);
  }
}

const char *step_join_word(join_type join) {
  static const char *const words[] = {
      [JOIN_TYPE_INNER] = " JOIN ",       [JOIN_TYPE_LEFT] = " LEFT JOIN ",
      [JOIN_TYPE_RIGHT] = " RIGHT JOIN ", [JOIN_TYPE_FULL] = " FULL JOIN ",
      [JOIN_TYPE_SEMI] = " SEMI JOIN ",   [JOIN_TYPE_ANTI] = " ANTI JOIN ",
      [JOIN_TYPE_CROSS] = " CROSS JOIN ",
  };
  return words[join];
}

const char *step_set_words(const relation_step *step) {
  static const char *const words[3][3] = {
      {" UNION ", " UNION ALL ", " UNION ALL BY NAME "},
      {" INTERSECT ", " INTERSECT ALL ", ""},
      {" EXCEPT ", " EXCEPT ALL ", ""},
  };
  if (step->by_name && !step->all) {
    return " UNION BY NAME ";
  }
  return words[step->set][step->by_name ? 2 : step->all ? 1 : 0];
}

/* -------------------------------------------------------------------- columns */

const schema *relation_columns(const relation *r) {
  return r->view.kind == RELATION_BUILT ? r->view.step->out.columns
                                        : atomic_load_explicit(&r->remembered, memory_order_acquire);
}

hf_status relation_remember_columns(const relation *r, const schema *columns, hf_error *error) {
  relation *owner = (relation *)r; /* a memo is no part of the value */
  arena *a = arena_new();
  schema *copy = a == NULL ? NULL : arena_alloc(a, sizeof *copy);
  if (copy == NULL || schema_copy(columns, a, copy, error) != HF_OK) {
    arena_free(a);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the columns of a relation");
  }
  const schema *none = NULL;
  if (atomic_compare_exchange_strong(&owner->remembered, &none, copy)) {
    owner->remembered_memory = a;
  } else {
    arena_free(a);
  }
  return HF_OK;
}

bool relation_is_checked(const relation *r) {
  return r->view.kind != RELATION_BUILT || !r->view.step->is_deferred;
}

hf_status relation_settle(const relation *r, const schema *columns, hf_error *error) {
  relation_step *step = (relation_step *)r->view.step; /* nobody else has the relation yet */
  if (step->out.columns != NULL) {
    return HF_OK;
  }
  step_maker m = {.arena = r->arena, .scratch = arena_new(), .error = error};
  schema *copy = arena_alloc(r->arena, sizeof *copy);
  hf_status status = m.scratch == NULL || copy == NULL ? build_out_of_memory(&m)
                                                       : schema_copy(columns, r->arena, copy, error);
  bool keeps = step->kind == BUILD_WITH_COLUMNS && step->in.labels == NULL;
  step_side out = {.columns = copy, .alias = keeps ? step->in.alias : NULL};
  if (status == HF_OK) {
    status = build_inside_names(&m, &out);
  }
  arena_free(m.scratch);
  if (status == HF_OK) {
    step->out = out;
  }
  return status;
}
