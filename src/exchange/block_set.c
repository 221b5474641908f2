/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of some locations, out of their attempts. Reading them is in input.c and stream.c. */
#include "exchange/block_set.h"

#include "arrow/ipc.h"
#include "base/fault.h"

#include <string.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read blocks");
}

static bool is_wanted(const block_location *location, uint32_t partition) {
  return location->partition_count == 0 ||
         (partition >= location->partition_first &&
          partition - location->partition_first < location->partition_count);
}

static bool is_like_first(const block_set *set, const block_index *index,
                          const struct ArrowSchema *arrow_schema) {
  bool is_alike = arrow_schema->n_children == (int64_t)index->columns.n_columns;
  if (set->arrow_schema.release != NULL) {
    is_alike = is_alike && index->columns.n_columns == set->columns.n_columns &&
               arrow_schemas_alike(&set->arrow_schema, arrow_schema);
  }
  return is_alike;
}

/* The first location gives the columns; those of the others must be like them. */
static hf_status take_schema(block_set *set, const block_attempt *attempt, hf_error *error) {
  struct ArrowSchema arrow_schema = {0};
  const block_index *index = &attempt->index;
  ipc_cursor cursor = {.bytes = index->arrow_schema, .left = index->arrow_schema_bytes};
  HF_TRY(ipc_read_schema(&cursor, &arrow_schema, error));
  bool is_alike = is_like_first(set, index, &arrow_schema);
  if (is_alike && set->arrow_schema.release == NULL) {
    set->arrow_schema = arrow_schema;
    set->columns = index->columns;
    return HF_OK;
  }
  arrow_schema.release(&arrow_schema);
  return is_alike ? HF_OK
                  : error_set(error, HF_E_BLOCK_CORRUPT,
                              "blocks that are read together differ in their columns: %s",
                              block_path_tail(attempt->dir));
}

static hf_status open_attempts(block_set *set, const block_location *locations, size_t n_locations,
                               block_keeper *keeper, hf_error *error) {
  size_t n_blocks = 0;
  set->attempts = arena_array(set->memory, n_locations, sizeof(block_attempt *));
  if (set->attempts == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n_locations; i++) {
    HF_TRY(block_attempt_open(locations[i].dir, keeper, &set->attempts[i], error));
    set->n_attempts++;
    HF_TRY(take_schema(set, set->attempts[i], error));
    n_blocks += set->attempts[i]->index.n_blocks;
  }
  set->blocks = arena_array(set->memory, n_blocks, sizeof *set->blocks);
  return set->blocks == NULL ? no_memory(error) : HF_OK;
}

/* Which of the wanted blocks are in the share: from *first up to *end. */
static void share_of(const block_location *location, const block_index *index, size_t *first, size_t *end) {
  size_t n_wanted = 0;
  for (size_t i = 0; i < index->n_blocks; i++) {
    n_wanted += is_wanted(location, index->blocks[i].partition) ? 1 : 0;
  }
  *first = 0;
  *end = n_wanted;
  if (location->share_of > 0) {
    *first = n_wanted * location->share_first / location->share_of;
    *end = n_wanted * (location->share_first + (size_t)location->share_count) / location->share_of;
    *end -= *end > *first && FAULT("exchange.share_short") ? 1 : 0;
  }
}

static void add_blocks(block_set *set, const block_location *location, block_attempt *attempt) {
  size_t n_parts = attempt->index.columns.n_columns + 1, wanted = 0, first = 0, end = 0;
  share_of(location, &attempt->index, &first, &end);
  for (size_t i = 0; i < attempt->index.n_blocks; i++) {
    const block *b = &attempt->index.blocks[i];
    if (!is_wanted(location, b->partition)) {
      continue;
    }
    size_t number = wanted++;
    if (number >= first && number < end) {
      set->blocks[set->n_blocks++] = (set_block){.attempt = attempt,
                                                 .file_number = b->file,
                                                 .file = attempt->files[b->file],
                                                 .offset = b->offset,
                                                 .bytes = b->bytes,
                                                 .rows = b->rows,
                                                 .parts = b->parts,
                                                 .ranges = b->ranges,
                                                 .is_verified = attempt->is_verified + i * n_parts};
      set->rows += b->rows;
    }
  }
}

static hf_status open_locations(block_set *set, const block_location *locations, size_t n_locations,
                                block_keeper *keeper, hf_error *error) {
  HF_TRY(open_attempts(set, locations, n_locations, keeper, error));
  for (size_t i = 0; i < n_locations; i++) {
    add_blocks(set, &locations[i], set->attempts[i]);
  }
  return HF_OK;
}

hf_status block_set_open(const block_location *locations, size_t n_locations, block_keeper *keeper,
                         block_set *out, hf_error *error) {
  *out = (block_set){.memory = arena_new()};
  hf_status status = HF_OK;
  if (out->memory == NULL) {
    status = no_memory(error);
  } else if (n_locations == 0) {
    status = error_set(error, HF_E_INVALID_ARGUMENT, "there is no location to read blocks from");
  } else {
    status = open_locations(out, locations, n_locations, keeper, error);
  }
  if (status != HF_OK) {
    block_set_close(out);
  }
  return status;
}

/* Whether some row of the block may meet the filter. */
static bool may_match(const set_block *b, const range_filter *filter) {
  const block_range *range = &b->ranges[filter->column];
  switch (filter->op) {
    case RANGE_IS_NULL:
      return range->nulls > 0;
    case RANGE_IS_NOT_NULL:
      return range->nulls < b->rows;
    case RANGE_LESS:
      return range->is_known ? range_key_compare(range->least, filter->key) <= 0 : range->nulls < b->rows;
    case RANGE_MORE:
      return range->is_known
                 ? range_key_compare(range->most, filter->key) >= (FAULT("exchange.range_edge") ? 1 : 0)
                 : range->nulls < b->rows;
    case RANGE_EQUAL:
      return range->is_known ? range_key_compare(range->least, filter->key) <= 0 &&
                                   range_key_compare(range->most, filter->key) >= 0
                             : range->nulls < b->rows;
    default:
      return true;
  }
}

hf_status block_set_filter(block_set *set, const range_filter *filters, size_t n_filters, hf_error *error) {
  for (size_t i = 0; i < n_filters; i++) {
    if (filters[i].column >= set->columns.n_columns) {
      return error_set(error, HF_E_INVALID_ARGUMENT,
                       "a filter of blocks is of a column that is not there: %u", filters[i].column);
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < set->n_blocks; i++) {
    const set_block *b = &set->blocks[i];
    bool is_wanted_block = true;
    for (size_t j = 0; b->ranges != NULL && is_wanted_block && j < n_filters; j++) {
      is_wanted_block = may_match(b, &filters[j]);
    }
    if (is_wanted_block) {
      set->blocks[kept++] = *b;
    } else {
      set->rows -= b->rows;
    }
  }
  set->n_left_out += set->n_blocks - kept;
  set->n_blocks = kept;
  return HF_OK;
}

void block_set_close(block_set *set) {
  for (size_t i = 0; i < set->n_attempts; i++) {
    block_attempt_release(set->attempts[i]);
  }
  if (set->arrow_schema.release != NULL) {
    set->arrow_schema.release(&set->arrow_schema);
  }
  arena_free(set->memory);
  memset(set, 0, sizeof *set);
}

hf_status block_set_blame(const set_block *b, hf_status status, hf_error *error) {
  if (status == HF_E_BLOCK_CORRUPT) {
    error_wrap(error, "the block at %llu of %s", (unsigned long long)b->offset, b->file->path);
  }
  return status;
}

const uint8_t *set_block_code_bytes(const set_block *b) {
  return b->attempt->code_bytes[b->file_number];
}
