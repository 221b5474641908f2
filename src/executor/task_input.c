/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task's inputs of blocks. The engine sees `task_source`; each call goes on to
 * exchange's block_input. What the scan and thread states hold beside exchange's
 * own is the way back to the source.
 * Thread: open and close the slot's; the source callbacks DuckDB's, in parallel.
 */
#include "task_input.h"

#include "base/mem.h"

typedef struct task_source {
  block_input *blocks;
  const source_ops *ops; /* of `blocks` */
  const stage_input *plan;
  const attempt *at;
  bool is_own;      /* of an earlier stage of the same job */
  atomic_bool lost; /* a block was missing or corrupt */
} task_source;

/* A scan, or one thread of it. */
typedef struct source_part {
  task_source *source;
  void *inner;
} source_part;

static hf_status note(task_source *s, hf_status status) {
  if (status == HF_E_BLOCK_MISSING || status == HF_E_BLOCK_CORRUPT) {
    atomic_store(&s->lost, true);
  }
  return status;
}

static hf_status part_new(task_source *s, void *inner, void **out) {
  source_part *part = mem_zalloc(1, sizeof *part);
  if (part == NULL) {
    return HF_E_OUT_OF_MEMORY;
  }
  *part = (source_part){s, inner};
  *out = part;
  return HF_OK;
}

static hf_status source_open(void *source, const size_t *columns, size_t n_columns, void **scan,
                             unsigned *threads, hf_error *error) {
  task_source *s = source;
  void *inner = NULL;
  HF_TRY(note(s, s->ops->open(s->blocks, columns, n_columns, &inner, threads, error)));
  if (part_new(s, inner, scan) != HF_OK) {
    s->ops->close(inner);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to scan blocks");
  }
  return HF_OK;
}

static hf_status source_thread_open(void *scan, void **state, hf_error *error) {
  source_part *part = scan;
  task_source *s = part->source;
  void *inner = NULL;
  HF_TRY(note(s, s->ops->thread_open(part->inner, &inner, error)));
  if (part_new(s, inner, state) != HF_OK) {
    s->ops->thread_close(inner);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to scan blocks");
  }
  return HF_OK;
}

static hf_status source_next(void *state, struct ArrowArray *out, hf_error *error) {
  source_part *part = state;
  task_source *s = part->source;
  if (atomic_load_explicit(&s->at->cancelled, memory_order_relaxed)) {
    return error_set(error, HF_E_CANCELLED, "the task was cancelled");
  }
  return note(s, s->ops->next(part->inner, out, error));
}

static void source_thread_close(void *state) {
  source_part *part = state;
  part->source->ops->thread_close(part->inner);
  mem_free(part);
}

static void source_close(void *scan) {
  source_part *part = scan;
  part->source->ops->close(part->inner);
  mem_free(part);
}

static const source_ops task_source_ops = {
    .open = source_open,
    .thread_open = source_thread_open,
    .next = source_next,
    .thread_close = source_thread_close,
    .close = source_close,
};

/* Types with an ENUM in them may have lost it on the way; the SQL casts them back. */
static bool has_same_types(const schema *blocks, const schema *plan) {
  if (blocks->n_columns != plan->n_columns) {
    return false;
  }
  for (size_t i = 0; i < plan->n_columns; i++) {
    const data_type *type = plan->columns[i].type;
    if (!data_type_contains(type, TYPE_ENUM) && !data_type_equal(blocks->columns[i].type, type)) {
      return false;
    }
  }
  return true;
}

static hf_status source_init(task_source *s, const executor *x, const task_input *given, arena *a,
                             hf_error *error) {
  block_location *locations = arena_array(a, given->n_blocks, sizeof *locations);
  if (locations == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the inputs of a task");
  }
  for (size_t i = 0; i < given->n_blocks; i++) {
    const block_ref *ref = &given->blocks[i];
    locations[i] = (block_location){.dir = executor_attempt_dir(x, ref, a),
                                    .partition_first = ref->partition_first,
                                    .partition_count = ref->partition_count,
                                    .share_first = ref->share_first,
                                    .share_count = ref->share_count,
                                    .share_of = ref->share_of};
    if (locations[i].dir == NULL) {
      return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the inputs of a task");
    }
  }
  range_filter *filters = arena_array(a, s->plan->n_filters, sizeof *filters);
  if (filters == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the inputs of a task");
  }
  for (size_t i = 0; i < s->plan->n_filters; i++) {
    const stage_filter *f = &s->plan->filters[i];
    filters[i] = (range_filter){f->column, (range_op)f->op, {f->key_high, f->key_low}};
  }
  block_input_options options = {.locations = locations,
                                 .n_locations = given->n_blocks,
                                 .ordered = s->plan->ordered,
                                 .verify = s->plan->verify,
                                 .threads = x->threads_each,
                                 .keeper = uuid_is_none(&s->plan->held_key) ? NULL : x->keeper,
                                 .filters = filters,
                                 .n_filters = s->plan->n_filters};
  HF_TRY(note(s, block_input_new(&options, &s->blocks, error)));
  s->ops = block_input_ops();
  if (!has_same_types(block_input_columns(s->blocks), &s->plan->columns)) {
    return error_set(error, HF_E_PROTOCOL, "blocks have other columns than the stage plan says: %s",
                     locations[0].dir);
  }
  return HF_OK;
}

/* hf_blocks knows its input by number; the text of it lives in the arena. */
static hf_status input_init(task_inputs *inputs, const executor *x, size_t number, const task_input *given,
                            arena *a, hf_error *error) {
  task_source *s = &inputs->sources[inputs->n];
  engine_input *in = &inputs->engine[inputs->n];
  inputs->n++; /* from here its lost block counts, and it is closed */
  HF_TRY(source_init(s, x, given, a, error));
  *in = (engine_input){.id = arena_printf(a, "%zu", number),
                       .ops = &task_source_ops,
                       .source = s,
                       .columns = block_input_columns(s->blocks),
                       .block_schema = block_input_arrow_schema(s->blocks),
                       .rows = block_input_rows(s->blocks)};
  return in->id == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the inputs of a task") : HF_OK;
}

hf_status task_inputs_open(task_inputs *inputs, const executor *x, const stage_plan *plan, const attempt *at,
                           arena *a, hf_error *error) {
  inputs->engine = arena_array(a, plan->n_inputs, sizeof *inputs->engine);
  inputs->sources = arena_array(a, plan->n_inputs, sizeof *inputs->sources);
  if (inputs->engine == NULL || inputs->sources == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the inputs of a task");
  }
  for (size_t i = 0; i < plan->n_inputs; i++) {
    const task_input *given = &at->spec.inputs[i];
    if (plan->inputs[i].kind == STAGE_INPUT_BLOCKS && given->n_blocks > 0) {
      inputs->sources[inputs->n].plan = &plan->inputs[i];
      inputs->sources[inputs->n].at = at;
      inputs->sources[inputs->n].is_own = given->blocks[0].job.value == plan->job.value;
      HF_TRY(input_init(inputs, x, i, given, a, error));
    }
  }
  return HF_OK;
}

void task_inputs_close(task_inputs *inputs) {
  for (size_t i = 0; i < inputs->n; i++) {
    if (inputs->sources[i].blocks != NULL) {
      block_input_free(inputs->sources[i].blocks);
      inputs->sources[i].blocks = NULL;
    }
  }
}

void task_inputs_rows(const task_inputs *inputs, uint64_t *rows, uint64_t *held_rows, uint64_t *own_rows) {
  *rows = *held_rows = *own_rows = 0;
  for (size_t i = 0; i < inputs->n; i++) {
    const task_source *s = &inputs->sources[i];
    uint64_t read = s->blocks == NULL ? 0 : block_input_rows_read(s->blocks);
    *rows += read;
    *held_rows += uuid_is_none(&s->plan->held_key) ? 0 : read;
    *own_rows += s->is_own ? read : 0;
  }
}

void task_inputs_blocks(const task_inputs *inputs, uint64_t *read, uint64_t *all) {
  *read = *all = 0;
  for (size_t i = 0; i < inputs->n; i++) {
    const task_source *s = &inputs->sources[i];
    uint64_t of_input[2] = {0, 0};
    if (s->blocks != NULL && !uuid_is_none(&s->plan->held_key)) {
      block_input_blocks(s->blocks, &of_input[0], &of_input[1]);
    }
    *read += of_input[0];
    *all += of_input[1];
  }
}

uint64_t task_inputs_bytes(const task_inputs *inputs) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < inputs->n; i++) {
    const block_input *blocks = inputs->sources[i].blocks;
    bytes += blocks == NULL ? 0 : block_input_bytes(blocks);
  }
  return bytes;
}

uuid task_inputs_lost_key(const task_inputs *inputs) {
  for (size_t i = 0; i < inputs->n; i++) {
    if (atomic_load(&inputs->sources[i].lost)) {
      return inputs->sources[i].plan->held_key;
    }
  }
  return (uuid){""};
}
