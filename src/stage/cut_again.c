/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cutting again: what is known of stages that were launched, by their marks; what is
 * read from them.
 * Thread: any, as the door.
 */
#include "stage/cut_internal.h"

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

void cut_take_fact(const cutter *c, cut_stage *made) {
  made->mark = mark_of(c, made);
  for (size_t i = 0; i < c->options->n_facts; i++) {
    const cut_fact *fact = &c->options->facts[i];
    if (fact->is_done && is_same_mark(fact->mark, made->mark)) {
      made->rows = (double)fact->rows;
      made->bytes = (double)fact->bytes;
      made->is_done = true;
    }
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

static bool has_dealt_source(const cutter *c, const tree_node *node) {
  bool has = cut_source_of(c, node) != NULL && c->readings[node->number].share == CUT_PARTITION;
  for (size_t i = 0; !has && i < node->n_children; i++) {
    has = has_dealt_source(c, node->children[i]);
  }
  return has;
}

hf_status cut_take_done(cutter *c, cut_part *part, const cut_keys *keys) {
  size_t n_stages = c->n_stages;
  uint32_t stage = 0;
  bool was_undealt = c->is_undealt;
  if (c->options->n_facts == 0 || part->is_one || part->node->kind == TREE_INPUT ||
      has_dealt_source(c, part->node)) {
    return HF_OK;
  }
  HF_TRY(cut_close(c, part, keys, false, &stage));
  c->is_undealt = was_undealt;
  if (!c->stages[stage].is_done) {
    c->n_stages = n_stages;
    return HF_OK;
  }
  HF_TRY(cut_read(c, stage, keys == NULL ? CUT_SPLIT : CUT_PARTITION, false, part->node, &part->node));
  cut_take_rows(c, stage, part);
  part->needs_deals = false;
  part->what = "";
  part->n_deals = 0;
  return keys == NULL ? HF_OK : cut_set_deal(c, part, keys);
}
