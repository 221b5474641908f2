/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cutting again: what is known of stages that were launched, by their marks; what is
 * read from them.
 * Thread: any, as the door.
 */
#include "stage/cut_internal.h"

#include "base/fault.h"

#include <string.h>
#include <xxhash.h>

/* ------------------------------------------------------------------- marks */

static void add_to_mark(cut_mark *mark, const void *bytes, size_t n) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, n, mark->low);
  mark->high = mark->high * UINT64_C(0x9e3779b97f4a7c15) + hash.high64;
  mark->low = hash.low64;
}

static void mark_input(const cutter *c, const cut_input *input, cut_mark *mark) {
  const uint64_t how[] = {(uint64_t)input->share, input->is_stage, input->ordered, input->columns.n_columns};
  add_to_mark(mark, how, sizeof how);
  if (input->is_stage) {
    add_to_mark(mark, &c->stages[input->stage].mark, sizeof(cut_mark));
  } else {
    add_to_mark(mark, input->source_id, strlen(input->source_id));
  }
  if (input->source_columns != NULL) {
    add_to_mark(mark, input->source_columns, input->columns.n_columns * sizeof(size_t));
  }
}

static cut_mark mark_of(const cutter *c, const cut_stage *stage) {
  const uint64_t how[] = {stage->one_task, stage->partitions, stage->n_pieces, stage->n_inputs};
  cut_mark mark = {0, 0};
  add_to_mark(&mark, how, sizeof how);
  for (size_t i = 0; i < stage->n_pieces; i++) {
    const cut_piece *piece = &stage->pieces[i];
    const char *text = piece->text == NULL ? "" : piece->text;
    add_to_mark(&mark, &piece->input, sizeof piece->input);
    add_to_mark(&mark, text, strlen(text));
  }
  for (size_t i = 0; i < stage->n_inputs; i++) {
    mark_input(c, &stage->inputs[i], &mark);
  }
  return mark;
}

static bool is_same_mark(cut_mark a, cut_mark b) {
  return a.high == b.high && a.low == b.low;
}

/* What is known of the stage, or NULL: it was not launched. */
static const cut_fact *fact_of(const cutter *c, const cut_stage *stage) {
  for (size_t i = 0; i < c->options->n_facts; i++) {
    if (is_same_mark(c->options->facts[i].mark, stage->mark)) {
      return &c->options->facts[i];
    }
  }
  return NULL;
}

void cut_take_fact(const cutter *c, cut_stage *made) {
  made->mark = mark_of(c, made);
  const cut_fact *fact = fact_of(c, made);
  if (fact != NULL && fact->is_done) {
    made->rows = (double)fact->rows;
    made->bytes = (double)fact->bytes;
    made->is_done = true;
  }
}

bool cut_find_equal(const cutter *c, const cut_stage *made, uint32_t *at) {
  for (uint32_t i = 0; i < c->n_stages; i++) {
    if (is_same_mark(c->stages[i].mark, made->mark)) {
      *at = i;
      return true;
    }
  }
  return false;
}

/* --------------------------------------------------------------- what is launched */

/* The stage that the part would be, if that was launched; else nothing has changed. */
static hf_status find_launched(cutter *c, const cut_part *part, const cut_keys *keys, uint32_t *stage,
                               bool *is_found) {
  size_t n_stages = c->n_stages;
  bool was_undealt = c->is_undealt;
  cut_reading *before = NULL;
  *is_found = false;
  if (c->options->n_facts == 0) {
    return HF_OK;
  }
  HF_TRY(cut_array(c, c->n_readings, sizeof *before, &before));
  for (size_t i = 0; i < c->n_readings; i++) {
    before[i] = c->readings[i];
  }
  HF_TRY(cut_close(c, part, keys, false, stage));
  c->is_undealt = was_undealt;
  const cut_fact *fact = fact_of(c, &c->stages[*stage]);
  *is_found = fact != NULL && (fact->is_done || !FAULT("stage.launched_remade"));
  if (!*is_found) {
    c->n_stages = n_stages;
    memcpy(c->readings, before, c->n_readings * sizeof *before);
  }
  return HF_OK;
}

hf_status cut_is_launched(cutter *c, const cut_part *part, const cut_keys *keys, bool *is_it) {
  size_t n_stages = c->n_stages;
  uint32_t stage = 0;
  HF_TRY(find_launched(c, part, keys, &stage, is_it));
  c->n_stages = n_stages;
  return HF_OK;
}

hf_status cut_take_launched(cutter *c, cut_part *part, const cut_keys *keys) {
  uint32_t stage = 0;
  bool is_found = false, is_one = part->is_one && keys == NULL;
  if (part->node->kind == TREE_INPUT && keys == NULL) {
    return HF_OK;
  }
  HF_TRY(find_launched(c, part, keys, &stage, &is_found));
  if (!is_found) {
    return HF_OK;
  }
  cut_share share = keys != NULL ? CUT_PARTITION : is_one ? CUT_ALL : CUT_SPLIT;
  HF_TRY(cut_read(c, stage, share, false, part->node, &part->node));
  cut_take_rows(c, stage, part);
  part->is_one = is_one;
  part->filter = NULL;
  part->needs_deals = false;
  part->what = "";
  part->n_deals = 0;
  return keys == NULL ? HF_OK : cut_set_deal(c, part, keys);
}

/* ------------------------------------------------------------- what it has in a column */

/* Whole numbers, dates, times and decimals as blocks hold them: exchange/range.h. */
static bool can_watch(const data_type *type) {
  switch (type->kind) {
    case TYPE_INTEGER:
    case TYPE_UINTEGER:
    case TYPE_BIGINT:
    case TYPE_UBIGINT:
    case TYPE_DATE:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_S:
    case TYPE_TIMESTAMP_MS:
    case TYPE_TIMESTAMP_NS:
    case TYPE_TIMESTAMP_TZ:
      return true;
    case TYPE_DECIMAL:
      return type->width <= 18;
    default:
      return false;
  }
}

bool cut_can_watch(const tree_expression *key) {
  return key->kind == EXPRESSION_REF && can_watch(key->type);
}

hf_status cut_watch(cutter *c, uint32_t stage, uint32_t at) {
  cut_stage *of = &c->stages[stage];
  uint32_t *watched = NULL;
  for (size_t i = 0; i < of->n_watched; i++) {
    if (of->watched[i] == at) {
      return HF_OK;
    }
  }
  HF_TRY(cut_array(c, of->n_watched + 1, sizeof *watched, &watched));
  for (size_t i = 0; i < of->n_watched; i++) {
    watched[i] = of->watched[i];
  }
  watched[of->n_watched++] = at;
  of->watched = watched;
  return HF_OK;
}

const cut_column_fact *cut_fact_of_key(const cutter *c, uint32_t stage, const tree_expression *key) {
  static const cut_column_fact nothing = {.rows = 0};
  const cut_fact *fact = c->stages[stage].is_done ? fact_of(c, &c->stages[stage]) : NULL;
  if (fact != NULL && fact->rows == 0) {
    return &nothing;
  }
  for (size_t i = 0; fact != NULL && cut_can_watch(key) && i < fact->n_columns; i++) {
    if (fact->columns[i].column == key->ref) {
      return &fact->columns[i];
    }
  }
  return NULL;
}

/* ------------------------------------------------------------------- filters */

/* Stored in 64 bits; of a type that can be watched. */
static const tree_expression *constant_of(cutter *c, uint64_t stored, const data_type *type) {
  bool is_signed = type->kind != TYPE_UINTEGER && type->kind != TYPE_UBIGINT;
  tree_value *value = arena_alloc(c->a, sizeof *value);
  if (value == NULL) {
    c->is_out_of_memory = true;
    return cut_number(c, 0, type);
  }
  *value = (tree_value){.type = type, .lower = stored, .upper = is_signed && (int64_t)stored < 0 ? -1 : 0};
  return cut_make(c, &(tree_expression){.kind = EXPRESSION_CONSTANT, .type = type, .value = value});
}

static hf_status make_between(cutter *c, const tree_expression *key, const cut_column_fact *fact,
                              const tree_expression **out) {
  const tree_expression **children = NULL;
  HF_TRY(cut_pointers(c, 3, &children));
  children[0] = key;
  children[1] = constant_of(c, fact->least, key->type);
  children[2] = constant_of(c, fact->most - (FAULT("stage.filter_edge") ? 1 : 0), key->type);
  *out = cut_make(c, &(tree_expression){.kind = EXPRESSION_BETWEEN,
                                        .type = &cut_boolean,
                                        .n_children = 3,
                                        .children = children,
                                        .lower_inclusive = true,
                                        .upper_inclusive = true});
  return HF_OK;
}

static hf_status make_in(cutter *c, const tree_expression *key, const cut_column_fact *fact,
                         const tree_expression **out) {
  const tree_expression **children = NULL;
  HF_TRY(cut_pointers(c, fact->n_values + 1, &children));
  children[0] = key;
  for (size_t i = 0; i < fact->n_values; i++) {
    children[i + 1] = constant_of(c, fact->values[i], key->type);
  }
  *out = cut_make(c, &(tree_expression){.kind = EXPRESSION_OPERATOR,
                                        .type = &cut_boolean,
                                        .operator= OPERATOR_IN,
                                        .n_children = fact->n_values + 1,
                                        .children = children});
  return HF_OK;
}

hf_status cut_add_filter(cutter *c, const tree_expression *key, const cut_column_fact *fact,
                         const tree_expression **filters, size_t *n) {
  if (fact->rows == 0) {
    filters[(*n)++] = cut_number(c, 0, &cut_boolean);
    return HF_OK;
  }
  if (fact->n_values == 1) {
    filters[(*n)++] = cut_compare(c, COMPARE_EQUAL, key, constant_of(c, fact->least, key->type));
    return HF_OK;
  }
  HF_TRY(make_between(c, key, fact, &filters[(*n)++]));
  return fact->n_values == 0 ? HF_OK : make_in(c, key, fact, &filters[(*n)++]);
}

double cut_share_of_fact(const cut_column_fact *fact, double keys) {
  double width = (double)(fact->most - fact->least) + 1;
  double n = fact->n_values > 0 ? (double)fact->n_values : width;
  return fact->rows == 0 ? 0 : keys < 1 || n > keys ? 1 : n / keys;
}
