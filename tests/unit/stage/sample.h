/* SPDX-License-Identifier: Apache-2.0 */
/* A stage plan and a task spec that use every field, for the tests of stage/. */
#ifndef TESTS_UNIT_STAGE_SAMPLE_H
#define TESTS_UNIT_STAGE_SAMPLE_H

#include "stage/stage.h"

#define SAMPLE_SESSION "0f8fad5b-d9cb-469f-a165-70867728950e"
#define SAMPLE_KEY "7c9e6679-7425-40de-944b-e07fc1f90ae7"

static const data_type sample_varchar = {.kind = TYPE_VARCHAR};
static const data_type sample_bigint = {.kind = TYPE_BIGINT};
static const data_type sample_decimal = {.kind = TYPE_DECIMAL, .width = 38, .scale = 10};
static const char *const sample_enum_values[] = {"", "it's", "\xf0\x9f\x98\x80", "x\ny"};
static const data_type sample_enum = {.kind = TYPE_ENUM, .n_names = 4, .names = sample_enum_values};
static const data_type *const sample_enum_child[] = {&sample_enum};
static const data_type sample_list = {.kind = TYPE_LIST, .n_children = 1, .children = sample_enum_child};
static const data_type *const sample_list_child[] = {&sample_list};
static const data_type sample_array = {
    .kind = TYPE_ARRAY, .array_size = 100000, .n_children = 1, .children = sample_list_child};
static const data_type *const sample_map_children[] = {&sample_varchar, &sample_array};
static const data_type sample_map = {.kind = TYPE_MAP, .n_children = 2, .children = sample_map_children};
static const data_type *const sample_fields[] = {&sample_map, &sample_decimal, &sample_bigint};
static const char *const sample_field_names[] = {"a", "a b", ""};
static const data_type sample_struct = {.kind = TYPE_STRUCT,
                                        .n_children = 3,
                                        .children = sample_fields,
                                        .n_names = 3,
                                        .names = sample_field_names};
static const data_type *const sample_members[] = {&sample_struct, &sample_bigint};
static const data_type sample_union = {.kind = TYPE_UNION,
                                       .n_children = 2,
                                       .children = sample_members,
                                       .n_names = 2,
                                       .names = sample_field_names};

static const column sample_columns[] = {
    {"plain", &sample_bigint}, {"", &sample_varchar}, {"dup", &sample_union}, {"dup", &sample_struct}};
static const stage_input sample_inputs[] = {{.kind = STAGE_INPUT_FILES,
                                             .columns = {2, sample_columns},
                                             .reader = "read_csv(%, names := ['a'])",
                                             .rows = 7},
                                            {.kind = STAGE_INPUT_BLOCKS,
                                             .columns = {4, sample_columns},
                                             .rows = UINT64_MAX,
                                             .ordered = true,
                                             .verify = true,
                                             .held_key = {SAMPLE_KEY}},
                                            {.kind = STAGE_INPUT_BLOCKS}};
static const stage_piece sample_pieces[] = {
    {"SELECT * FROM ", 0}, {NULL, 2}, {" AS t, ", 0}, {NULL, 0}, {"", 0}, {" AS \"u\"", 0}};
static const stage_setting sample_settings[] = {{"TimeZone", "Europe/Berlin"}, {"default_null_order", ""}};
static const char *const sample_dirs[] = {"/", "/data/with space"};

static const uint32_t sample_watched[] = {3, 0, 3};

static inline stage_plan sample_plan(void) {
  return (stage_plan){.session = {SAMPLE_SESSION},
                      .job = {UINT64_MAX},
                      .stage = {UINT32_MAX},
                      .n_pieces = 6,
                      .pieces = sample_pieces,
                      .n_inputs = 3,
                      .inputs = sample_inputs,
                      .output = {.partitions = 65536,
                                 .ordered = true,
                                 .durable = true,
                                 .held = true,
                                 .columns = {4, sample_columns},
                                 .n_watched = 3,
                                 .watched = sample_watched,
                                 .budget_bytes = 1,
                                 .batch_bytes = (uint64_t)1 << 40,
                                 .block_bytes = UINT64_MAX,
                                 .compression = IPC_COMPRESSION_LZ4},
                      .n_settings = 2,
                      .settings = sample_settings,
                      .n_allowed_dirs = 2,
                      .allowed_dirs = sample_dirs};
}

static const char *const sample_files[] = {"/data/a.parquet", "/data/odd 'name'.csv", "/data/\xff"};
static const block_ref sample_blocks[] = {
    {.session = {SAMPLE_SESSION}, .job = {1}, .stage = {2}, .task = {3}, .attempt = {4}},
    {{SAMPLE_KEY}, {UINT64_MAX}, {UINT32_MAX}, {UINT32_MAX}, {UINT32_MAX}, 65535, 1, 2, 1, UINT32_MAX}};
static const row_range sample_ranges[] = {{0, 0}, {122880, 7}, {INT64_MAX, 0}};
static const task_input sample_task_inputs[] = {
    {.n_files = 3, .files = sample_files, .ranges = sample_ranges},
    {.n_blocks = 2, .blocks = sample_blocks},
    {0}};

static inline task_spec sample_spec(void) {
  return (task_spec){
      .job = {9}, .stage = {8}, .task = {7}, .attempt = {6}, .n_inputs = 3, .inputs = sample_task_inputs};
}

#endif
