/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run: what DuckDB's callbacks reach while a task or a rendering runs. It holds
 * the inputs, in the face that DuckDB reads, and the first error of a callback,
 * which goes to the caller as it was (E3). The statement is in task.c and text.c.
 * Thread: opened and closed by the caller's; in between DuckDB's threads read it
 * and call run_fail.
 */
#include "engine_internal.h"

#include "base/thread.h"

#include <string.h>

/* Of INTERVALs in blocks; a client's durations keep theirs. Source: arrow/batch.h. */
#define BLOCK_INTERVAL_FORMAT "w:16"

void run_release_nothing(struct ArrowSchema *field) {
  field->release = NULL;
}

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the inputs of a statement");
}

/* Copies a field with the INTERVALs in it as month-day-nano; the array's bytes are put right after the conversion. */
static hf_status field_with_intervals(const data_type *type, const struct ArrowSchema *from, arena *a,
                                      struct ArrowSchema *out, hf_error *error);

static hf_status children_with_intervals(const data_type *type, const struct ArrowSchema *from, arena *a,
                                         struct ArrowSchema *out, hf_error *error) {
  size_t n = type->n_children;
  if ((size_t)from->n_children != n) {
    return error_set(error, HF_E_INTERNAL, "blocks are not of the type that is read: %s with %lld children",
                     type_kind_name(type->kind), (long long)from->n_children);
  }
  struct ArrowSchema *children = arena_array(a, n, sizeof *children);
  struct ArrowSchema **pointers = arena_array(a, n, sizeof(struct ArrowSchema *));
  if (children == NULL || pointers == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n; i++) {
    HF_TRY(field_with_intervals(type->children[i], from->children[i], a, &children[i], error));
    pointers[i] = &children[i];
  }
  out->children = pointers;
  return HF_OK;
}

/* A map's field has one child, the entries, which have the key and the value. */
static hf_status map_with_intervals(const data_type *type, const struct ArrowSchema *from, arena *a,
                                    struct ArrowSchema *out, hf_error *error) {
  struct ArrowSchema *entries = arena_alloc(a, sizeof *entries);
  struct ArrowSchema **pointer = arena_alloc(a, sizeof(struct ArrowSchema *));
  if (entries == NULL || pointer == NULL) {
    return no_memory(error);
  }
  if (from->n_children != 1) {
    return error_set(error, HF_E_INTERNAL, "blocks are not of the type that is read: MAP with %lld children",
                     (long long)from->n_children);
  }
  *entries = *from->children[0];
  entries->release = run_release_nothing;
  *pointer = entries;
  out->children = pointer;
  return children_with_intervals(type, from->children[0], a, entries, error);
}

static hf_status field_with_intervals(const data_type *type, const struct ArrowSchema *from, arena *a,
                                      struct ArrowSchema *out, hf_error *error) {
  *out = *from;
  out->release = run_release_nothing;
  if (type->kind == TYPE_INTERVAL && strcmp(from->format, BLOCK_INTERVAL_FORMAT) == 0) {
    out->format = EXACT_INTERVAL_FORMAT;
    out->metadata = NULL;
    return HF_OK;
  }
  if (type->kind == TYPE_MAP) {
    return map_with_intervals(type, from, a, out, error);
  }
  return children_with_intervals(type, from, a, out, error);
}

static hf_status input_open(run_input *input, const engine_input *from, arena *a, hf_error *error) {
  size_t n = from->columns->n_columns;
  input->from = from;
  input->is_exact = true;
  input->fields = arena_array(a, n, sizeof *input->fields);
  if (input->fields == NULL) {
    return no_memory(error);
  }
  if ((size_t)from->block_schema->n_children != n) {
    return error_set(error, HF_E_INTERNAL, "an input has %zu columns, its blocks have %lld", n,
                     (long long)from->block_schema->n_children);
  }
  for (size_t i = 0; i < n; i++) {
    const data_type *type = from->columns->columns[i].type;
    input->fields[i] = *from->block_schema->children[i];
    input->fields[i].release = run_release_nothing;
    input->is_exact = input->is_exact && !exact_is_needed(type);
    if (data_type_contains(type, TYPE_INTERVAL)) {
      HF_TRY(field_with_intervals(type, from->block_schema->children[i], a, &input->fields[i], error));
    }
  }
  return HF_OK;
}

hf_status run_open(engine_run *run, engine *e, const engine_input *inputs, size_t n_inputs, hf_error *error) {
  *run = (engine_run){.engine = e, .memory = arena_new()};
  pthread_mutex_init(&run->lock, NULL);
  cond_init(&run->left);
  e->run = run;
  run->inputs = run->memory == NULL ? NULL : arena_array(run->memory, n_inputs, sizeof *run->inputs);
  if (run->inputs == NULL) {
    return no_memory(error);
  }
  run->n_inputs = n_inputs;
  uint64_t rows = 0;
  for (size_t i = 0; i < n_inputs; i++) {
    HF_TRY(input_open(&run->inputs[i], &inputs[i], run->memory, error));
    rows += inputs[i].rows;
  }
  atomic_store(&e->block_rows, 0);
  atomic_store(&e->block_rows_total, rows);
  return HF_OK;
}

/*
 * DuckDB counts a task as done before its thread has let go of the pipeline, so a scan may be closed a moment after
 * the statement has returned.
 */
static void wait_for_users(engine_run *run) {
  pthread_mutex_lock(&run->lock);
  while (run->users > 0) {
    cond_wait_until(&run->left, &run->lock, 0);
  }
  pthread_mutex_unlock(&run->lock);
}

void run_enter(engine_run *run) {
  pthread_mutex_lock(&run->lock);
  run->users++;
  pthread_mutex_unlock(&run->lock);
}

void run_leave(engine_run *run) {
  pthread_mutex_lock(&run->lock);
  run->users--;
  pthread_cond_signal(&run->left);
  pthread_mutex_unlock(&run->lock);
}

void run_close(engine_run *run) {
  wait_for_users(run);
  run->engine->run = NULL;
  atomic_store(&run->engine->block_rows_total, 0);
  if (run->sink_schema.release != NULL) {
    run->sink_schema.release(&run->sink_schema);
  }
  for (size_t i = 0; run->sink_types != NULL && i < run->n_sink_columns; i++) {
    duckdb_destroy_logical_type(&run->sink_types[i]);
  }
  hf_error_reset(&run->error);
  pthread_cond_destroy(&run->left);
  pthread_mutex_destroy(&run->lock);
  arena_free(run->memory);
}

void run_fail(engine_run *run, hf_error *error) {
  if (error->code == HF_OK) {
    error_set(error, HF_E_INTERNAL, "a callback failed without an error");
  }
  pthread_mutex_lock(&run->lock);
  if (run->error.code == HF_OK) {
    error_move(&run->error, error);
  }
  pthread_mutex_unlock(&run->lock);
  hf_error_reset(error);
}

hf_status run_conclude(engine_run *run, hf_status status, hf_error *found, hf_error *error) {
  pthread_mutex_lock(&run->lock);
  hf_status kept = run->error.code;
  if (kept != HF_OK) {
    error_move(error, &run->error);
  } else if (status != HF_OK) {
    error_move(error, found);
  }
  pthread_mutex_unlock(&run->lock);
  hf_error_reset(found);
  return kept != HF_OK ? kept : status;
}
