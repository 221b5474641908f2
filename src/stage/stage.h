/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage plans and task specs: structs, and their bytes (proto/holdfast/v1/stage.proto).
 * Decoding bounds size, counts and depth before anything is allocated for them.
 * Thread: any.
 */
#ifndef HF_STAGE_STAGE_H
#define HF_STAGE_STAGE_H

#include "arrow/ipc.h"
#include "arrow/type.h"
#include "base/arena.h"
#include "base/id.h"

typedef enum stage_input_kind { STAGE_INPUT_FILES = 1, STAGE_INPUT_BLOCKS = 2 } stage_input_kind;

typedef struct stage_piece {
  const char *text; /* NULL: an input */
  uint32_t input;
} stage_piece;

/* What every row that the stage wants of an input meets; op and key are a range_filter's (exchange/range.h). */
typedef struct stage_filter {
  uint32_t column, op;
  uint64_t key_high, key_low;
} stage_filter;

typedef struct stage_input {
  stage_input_kind kind;
  schema columns;
  const char *reader; /* FILES */
  uint64_t rows;
  bool ordered, verify; /* BLOCKS */
  uuid held_key;        /* BLOCKS of a held result; else none */
  size_t n_filters;     /* BLOCKS of a held result */
  const stage_filter *filters;
} stage_input;

typedef struct stage_output {
  uint32_t partitions;
  bool ordered, durable;
  bool held; /* will be read again and again: dictionaries and ranges are kept */
  schema columns;
  size_t n_watched; /* columns that the report tells the values of */
  const uint32_t *watched;
  uint64_t budget_bytes, batch_bytes, block_bytes;
  ipc_compression compression;
} stage_output;

typedef struct stage_setting {
  const char *name, *value;
} stage_setting;

typedef struct stage_plan {
  uuid session;
  job_id job;
  stage_id stage;
  size_t n_pieces;
  const stage_piece *pieces;
  size_t n_inputs;
  const stage_input *inputs;
  stage_output output;
  size_t n_settings;
  const stage_setting *settings;
  size_t n_allowed_dirs;
  const char *const *allowed_dirs;
} stage_plan;

/* The attempt that holds blocks, by ids only: the executor that owns them knows the path. */
typedef struct block_ref {
  uuid session;
  job_id job;
  stage_id stage;
  task_id task;
  attempt_id attempt;
  uint32_t partition_first, partition_count;
  uint32_t share_first, share_count, share_of; /* see block_location */
} block_ref;

/* Rows of a file. */
typedef struct row_range {
  uint64_t first, count; /* count 0: all */
} row_range;

typedef struct task_input {
  size_t n_files;
  const char *const *files;
  const row_range *ranges; /* of each file; NULL: all are whole */
  uint64_t file_bytes;     /* of the files, as much as they have of the rows; for the profile, and not sent */
  size_t n_blocks;
  const block_ref *blocks;
} task_input;

typedef struct task_spec {
  job_id job;
  stage_id stage;
  task_id task;
  attempt_id attempt;
  size_t n_inputs;
  const task_input *inputs;
} task_spec;

/* Largest encoded plan or spec that is accepted. */
#define STAGE_LARGEST_BYTES ((size_t)64 << 20)

hf_status stage_plan_pack(const stage_plan *plan, buf *out, hf_error *error);
/* Errors: PROTOCOL (malformed, another version, an index out of range), LIMIT, OUT_OF_MEMORY. */
hf_status stage_plan_unpack(const void *bytes, size_t length, arena *a, stage_plan *out, hf_error *error);
hf_status task_spec_pack(const task_spec *spec, buf *out, hf_error *error);
hf_status task_spec_unpack(const void *bytes, size_t length, arena *a, task_spec *out, hf_error *error);

#endif
