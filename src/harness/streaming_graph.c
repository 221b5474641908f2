/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The edges of a plan as channels: how readers share, and which edges do not stay
 * bounded in memory. Pure.
 *
 * An edge spools from the start where waiting is known to bring all to a standstill or
 * near it: a stage that several inputs read (a diamond, a self-join: one reader may be
 * upstream of the other), a gather in order of several writers (all but the first would
 * wait). The rest wait, and spool when everything waits (src/channel/channel_wait.c). An edge
 * keeps its rows where SQL may scan an input more than once (what is not foreseen here makes
 * the job run again, streaming.c), and where the watch hashes them once more.
 */
#include "harness_internal.h"

#include <string.h>

static uint32_t count_readers(const query_plan *p, uint32_t from) {
  uint32_t n = 0;
  for (size_t s = 0; s < p->n_stages; s++) {
    for (size_t i = 0; i < p->stages[s].n_inputs; i++) {
      n += p->stages[s].inputs[i].is_stage && p->stages[s].inputs[i].from == from ? 1 : 0;
    }
  }
  return n;
}

/* DuckDB makes a self-join of some windows (its optimiser's window_self_join), so it scans their input twice. */
static bool may_scan_again(const char *text) {
  return strcasestr(text, "RECURSIVE") != NULL || strstr(text, " OVER (") != NULL;
}

static bool is_scanned_again(const cut_stage *stage, uint32_t input) {
  uint32_t n = 0;
  bool may = false;
  for (size_t i = 0; i < stage->n_pieces; i++) {
    const cut_piece *piece = &stage->pieces[i];
    n += piece->text == NULL && piece->input == input ? 1 : 0;
    may = may || (piece->text != NULL && may_scan_again(piece->text));
  }
  return n > 1 || may;
}

static channel_share share_of(cut_share share) {
  return share == CUT_SPLIT ? CHANNEL_SPLIT : share == CUT_PARTITION ? CHANNEL_PARTITION : CHANNEL_ALL;
}

static hf_status edge_make(const job_run *j, uint32_t stage, uint32_t input, streaming_edge *out,
                           hf_error *error) {
  const query_plan *p = j->plan;
  const planned_stage *reader = &p->stages[stage];
  const planned_stage *writer = &p->stages[reader->inputs[input].from];
  const cut_stage *cut = reader->cut;
  bool ordered = cut->inputs[input].ordered;
  /* one reader of all partitions reads all */
  channel_share share = share_of(reader->n_tasks == 1 ? CUT_ALL : reader->inputs[input].share);
  *out =
      (streaming_edge){.from = reader->inputs[input].from,
                       .stage = stage,
                       .input = input,
                       .channel = {.name = arena_printf(j->memory, "stage %u, input %u", stage + 1, input),
                                   .columns = &writer->cut->columns,
                                   .writers = writer->n_tasks,
                                   .readers = reader->n_tasks,
                                   .partitions = writer->partitions,
                                   .share = share,
                                   .ordered = ordered,
                                   .spools = count_readers(p, reader->inputs[input].from) > 1 ||
                                             (ordered && writer->n_tasks > 1),
                                   .keeps = is_scanned_again(cut, input) ||
                                            (reader->n_tasks > 1 && watch_keeps(j, &reader->inputs[input]))}};
  return out->channel.name == NULL ? harness_no_memory(error) : HF_OK;
}

hf_status streaming_edges(const job_run *j, streaming_edge **out, size_t *n, hf_error *error) {
  const query_plan *p = j->plan;
  size_t most = 0;
  for (size_t s = 0; s < p->n_stages; s++) {
    most += p->stages[s].n_inputs;
  }
  *n = 0;
  *out = arena_array(j->memory, most, sizeof **out);
  if (*out == NULL) {
    return harness_no_memory(error);
  }
  for (uint32_t s = 0; s < p->n_stages; s++) {
    for (uint32_t i = 0; i < p->stages[s].n_inputs; i++) {
      if (p->stages[s].inputs[i].is_stage) {
        HF_TRY(edge_make(j, s, i, &(*out)[(*n)++], error));
      }
    }
  }
  return HF_OK;
}
