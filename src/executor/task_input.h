/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task's inputs of blocks: opened from ids, read by the engine through a thin
 * layer that stops for a cancel and remembers which input failed.
 */
#ifndef HF_EXECUTOR_TASK_INPUT_H
#define HF_EXECUTOR_TASK_INPUT_H

#include "executor_internal.h"

typedef struct task_inputs {
  size_t n; /* inputs of blocks with at least one block */
  engine_input *engine;
  struct task_source *sources;
} task_inputs;

/* Opens them; memory in `a`, released by task_inputs_close also after a failure.
 * Errors: BLOCK_MISSING, BLOCK_CORRUPT, PROTOCOL (other columns than the plan says), OUT_OF_MEMORY. */
hf_status task_inputs_open(task_inputs *inputs, const executor *x, const stage_plan *plan, const attempt *at,
                           arena *a, hf_error *error);
void task_inputs_close(task_inputs *inputs);
/* Rows read, of all inputs, of held ones and of earlier stages of the job. */
void task_inputs_rows(const task_inputs *inputs, uint64_t *rows, uint64_t *held_rows, uint64_t *own_rows);
/* Blocks of held results that are read, of all those of the task: the others hold no wanted row. */
void task_inputs_blocks(const task_inputs *inputs, uint64_t *read, uint64_t *all);
/* Bytes of all blocks that are read. */
uint64_t task_inputs_bytes(const task_inputs *inputs);
/* The held result whose block could not be read, or none. */
uuid task_inputs_lost_key(const task_inputs *inputs);

#endif
