/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The witness: plain DuckDB that runs the query as it was written. Its rows go the
 * way of a task's, to blocks and into a client's stream; nothing of planning,
 * cutting or the scheduler has a part in them.
 * Thread: one at a time.
 */
#include "witness.h"

#include "base/config.h"
#include "base/file.h"
#include "base/mem.h"
#include "exchange/exchange.h"
#include "plan/lower.h"
#include "sql/token.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define WITNESS_MEMORY_BYTES ((uint64_t)4 << 30)

struct witness {
  arena *memory;
  engine *engine;
  const char *dir;
  config *settings; /* defaults: sizes of blocks */
  unsigned runs;
};

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the single-node answer");
}

/* Splits "a:b" and resolves links. The witness's own directory is among them. */
static hf_status allowed_dirs(const witness_options *from, arena *a, engine_options *out, hf_error *error) {
  size_t n = 2;
  for (const char *at = from->allow_path; *at != '\0'; at++) {
    n += *at == ':' ? 1 : 0;
  }
  const char **dirs = arena_array(a, n, sizeof *dirs);
  char *rest = arena_strdup(a, from->allow_path), *state = NULL;
  if (dirs == NULL || rest == NULL) {
    return no_memory(error);
  }
  out->allowed_dirs = dirs;
  dirs[out->n_allowed_dirs++] = from->dir;
  for (char *dir = strtok_r(rest, ":", &state); dir != NULL; dir = strtok_r(NULL, ":", &state)) {
    char real[PATH_MAX];
    dirs[out->n_allowed_dirs] = arena_strdup(a, realpath(dir, real) == NULL ? dir : real);
    if (dirs[out->n_allowed_dirs++] == NULL) {
      return no_memory(error);
    }
  }
  return HF_OK;
}

static hf_status open_engine(witness *w, const witness_options *options, hf_error *error) {
  const char *slot_dir = arena_printf(w->memory, "%s/slot", options->dir);
  const char *spill_dir = arena_printf(w->memory, "%s/spill", options->dir);
  w->dir = arena_strdup(w->memory, options->dir);
  if (slot_dir == NULL || spill_dir == NULL || w->dir == NULL) {
    return no_memory(error);
  }
  HF_TRY(file_make_dirs(slot_dir, error));
  HF_TRY(file_make_dirs(spill_dir, error));
  engine_setting *settings = arena_array(w->memory, options->n_settings + 1, sizeof *settings);
  size_t n_settings = 0;
  if (settings == NULL) {
    return no_memory(error);
  }
  for (; n_settings < options->n_settings; n_settings++) {
    settings[n_settings] = options->settings[n_settings];
  }
  if (options->time_zone != NULL) {
    settings[n_settings++] = (engine_setting){"TimeZone", options->time_zone};
  }
  engine_options open = {.kind = ENGINE_SLOT,
                         .threads = 1,
                         .memory_bytes = WITNESS_MEMORY_BYTES,
                         .spill_dir = spill_dir,
                         .slot_dir = slot_dir,
                         .settings = settings,
                         .n_settings = n_settings,
                         .extension_dir = engine_extension_dir(w->memory)};
  HF_TRY(allowed_dirs(options, w->memory, &open, error));
  return engine_open(&open, &w->engine, error);
}

hf_status witness_open(const witness_options *options, witness **out, hf_error *error) {
  witness *w = mem_zalloc(1, sizeof *w);
  if (w == NULL) {
    return no_memory(error);
  }
  w->memory = arena_new();
  w->settings = config_new();
  hf_status status =
      w->memory == NULL || w->settings == NULL ? no_memory(error) : open_engine(w, options, error);
  if (status != HF_OK) {
    witness_close(w);
    return status;
  }
  *out = w;
  return HF_OK;
}

void witness_close(witness *w) {
  if (w != NULL) {
    engine_close(w->engine);
    config_free(w->settings);
    arena_free(w->memory);
    mem_free(w);
  }
}

engine *witness_engine(witness *w) {
  return w->engine;
}

/* ---------------------------------------------------------------------- blocks */

static hf_status take(witness *w, const char *name, block_input *blocks, hf_error *error) {
  const engine_input input = {.id = "0",
                              .ops = block_input_ops(),
                              .source = blocks,
                              .columns = block_input_columns(blocks),
                              .block_schema = block_input_arrow_schema(blocks),
                              .rows = block_input_rows(blocks)};
  buf sql = {0};
  buf_text(&sql, "CREATE OR REPLACE TABLE ");
  buf_sql_name(&sql, name);
  buf_text(&sql, " AS SELECT * FROM ");
  lower_scan_sql(input.columns, "hf_blocks('0')", false, &sql);
  const engine_shown shown = {.sql = buf_cstr(&sql), .inputs = &input, .n_inputs = 1};
  hf_status status = sql.failed ? no_memory(error) : engine_copy(w->engine, &shown, error);
  buf_reset(&sql);
  return status;
}

hf_status witness_take_blocks(witness *w, const char *name, const char *attempt_dir, hf_error *error) {
  const block_location location = {.dir = attempt_dir};
  const block_input_options options = {
      .locations = &location, .n_locations = 1, .ordered = true, .verify = true, .threads = 1};
  block_input *blocks = NULL;
  HF_TRY(block_input_new(&options, &blocks, error));
  hf_status status = take(w, name, blocks, error);
  block_input_free(blocks);
  return status;
}

/* ------------------------------------------------------------------------ run */

struct witness_answer {
  arena *memory; /* holds this too */
  const char *dir;
};

void witness_answer_free(witness_answer *answer) {
  if (answer != NULL) {
    file_remove_tree(answer->dir, NULL);
    arena_free(answer->memory);
  }
}

static void remove_answer(void *context) {
  witness_answer_free(context);
}

static hf_status run_to_blocks(witness *w, const char *sql, witness_answer *answer, hf_error *error) {
  schema columns;
  HF_TRY(engine_describe(w->engine, sql, answer->memory, &columns, error));
  block_sink_options options = {.dir = answer->dir,
                                .columns = &columns,
                                .partitions = 1,
                                .ordered = true,
                                .budget_bytes = config_number(w->settings, CONFIG_SINK_BUDGET),
                                .batch_bytes = config_number(w->settings, CONFIG_SHUFFLE_BATCH_BYTES),
                                .block_bytes = config_number(w->settings, CONFIG_SHUFFLE_BLOCK_BYTES)};
  block_sink *sink = NULL;
  HF_TRY(block_sink_new(&options, &sink, error));
  engine_task task = {
      .id = "witness", .sql = sql, .partitions = 1, .ordered = true, .ops = block_sink_ops(), .sink = sink};
  engine_task_stats stats;
  block_index index;
  hf_status status = engine_run_task(w->engine, &task, &stats, error);
  if (status == HF_OK) {
    status = block_sink_commit(sink, answer->memory, &index, error);
  }
  block_sink_free(sink);
  return status;
}

/* DESCRIBE and SUMMARIZE can be described and copied only in parentheses. NULL: no memory. */
static const char *as_query(const char *sql, arena *a) {
  static const char *const heads[] = {"describe", "desc", "summarize"};
  token_list list;
  if (token_list_read(sql, strlen(sql), a, &list, NULL) != HF_OK || list.count == 0) {
    return sql; /* DuckDB tells what is wrong with it */
  }
  for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
    if (token_is(list.text, list.tokens[0], heads[i])) {
      return arena_printf(a, "SELECT * FROM (%s\n)", sql);
    }
  }
  return sql;
}

hf_status witness_compute(witness *w, const char *sql, witness_answer **out, hf_error *error) {
  arena *memory = arena_new();
  witness_answer *answer = memory == NULL ? NULL : arena_alloc(memory, sizeof *answer);
  const char *dir = answer == NULL ? NULL : arena_printf(memory, "%s/answer-%u", w->dir, ++w->runs);
  const char *query = dir == NULL ? NULL : as_query(sql, memory);
  if (query == NULL) {
    arena_free(memory);
    return no_memory(error);
  }
  *answer = (witness_answer){memory, dir};
  hf_status status = run_to_blocks(w, query, answer, error);
  if (status != HF_OK) {
    witness_answer_free(answer);
    return status;
  }
  *out = answer;
  return HF_OK;
}

static hf_status open_rows(const witness_answer *answer, void (*on_release)(void *context), void *context,
                           struct ArrowArrayStream *out, hf_error *error) {
  const block_location location = {.dir = answer->dir};
  return block_stream_open(&location, 1, on_release, context, out, error);
}

static void nothing(void *context) {
  (void)context;
}

hf_status witness_answer_rows(const witness_answer *answer, struct ArrowArrayStream *out, hf_error *error) {
  return open_rows(answer, nothing, NULL, out, error);
}

hf_status witness_run(witness *w, const char *sql, struct ArrowArrayStream *out, hf_error *error) {
  witness_answer *answer = NULL;
  HF_TRY(witness_compute(w, sql, &answer, error));
  hf_status status = open_rows(answer, remove_answer, answer, out, error);
  if (status != HF_OK) {
    witness_answer_free(answer);
  }
  return status;
}
