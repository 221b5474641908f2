/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structs → bytes: copies a plan or spec into protobuf-c's structs (in an arena
 * of its own, texts borrowed) and packs them. Decoding is in stage_decode.c.
 * Thread: any.
 */
#include "stage/stage_internal.h"

#include "wire/schema_message.h"

#include "holdfast/v1/stage.pb-c.h"

typedef struct encoder {
  arena *memory;
  hf_error *error;
} encoder;

static hf_status no_memory(encoder *e) {
  return error_set(e->error, HF_E_OUT_OF_MEMORY, "no memory to encode a stage plan");
}

static hf_status encode_pieces(encoder *e, const stage_plan *from, Holdfast__V1__StagePlan *to) {
  to->n_sql = from->n_pieces;
  to->sql = (Holdfast__V1__SqlPiece **)message_pointers(e->memory, from->n_pieces, sizeof **to->sql);
  if (to->sql == NULL) {
    return no_memory(e);
  }
  for (size_t i = 0; i < from->n_pieces; i++) {
    const stage_piece *piece = &from->pieces[i];
    holdfast__v1__sql_piece__init(to->sql[i]);
    if (piece->text != NULL) {
      to->sql[i]->piece_case = HOLDFAST__V1__SQL_PIECE__PIECE_TEXT;
      to->sql[i]->text = (char *)piece->text;
    } else {
      to->sql[i]->piece_case = HOLDFAST__V1__SQL_PIECE__PIECE_INPUT;
      to->sql[i]->input = piece->input;
    }
  }
  return HF_OK;
}

static hf_status encode_filters(encoder *e, const stage_input *from, Holdfast__V1__StageInput *to) {
  to->n_filters = from->n_filters;
  to->filters =
      (Holdfast__V1__BlockFilter **)message_pointers(e->memory, from->n_filters, sizeof **to->filters);
  if (to->filters == NULL) {
    return no_memory(e);
  }
  for (size_t i = 0; i < from->n_filters; i++) {
    holdfast__v1__block_filter__init(to->filters[i]);
    to->filters[i]->column = from->filters[i].column;
    to->filters[i]->op = from->filters[i].op;
    to->filters[i]->key_high = from->filters[i].key_high;
    to->filters[i]->key_low = from->filters[i].key_low;
  }
  return HF_OK;
}

static hf_status encode_input(encoder *e, const stage_input *from, Holdfast__V1__StageInput *to) {
  holdfast__v1__stage_input__init(to);
  to->kind = from->kind == STAGE_INPUT_FILES ? HOLDFAST__V1__STAGE_INPUT__KIND__FILES
                                             : HOLDFAST__V1__STAGE_INPUT__KIND__BLOCKS;
  to->reader = (char *)from->reader;
  to->has_rows = 1;
  to->rows = from->rows;
  to->has_ordered = 1;
  to->ordered = from->ordered;
  to->has_verify = 1;
  to->verify = from->verify;
  to->held_key = uuid_is_none(&from->held_key) ? NULL : (char *)from->held_key.text;
  HF_TRY(encode_filters(e, from, to));
  return schema_to_message(&from->columns, STAGE_MOST_TYPE_LEVELS, e->memory, &to->columns, e->error);
}

static hf_status encode_inputs(encoder *e, const stage_plan *from, Holdfast__V1__StagePlan *to) {
  to->n_inputs = from->n_inputs;
  to->inputs = (Holdfast__V1__StageInput **)message_pointers(e->memory, from->n_inputs, sizeof **to->inputs);
  if (to->inputs == NULL) {
    return no_memory(e);
  }
  for (size_t i = 0; i < from->n_inputs; i++) {
    HF_TRY(encode_input(e, &from->inputs[i], to->inputs[i]));
  }
  return HF_OK;
}

static hf_status encode_output(encoder *e, const stage_output *from, Holdfast__V1__StagePlan *plan) {
  Holdfast__V1__StageOutput *to = arena_alloc(e->memory, sizeof *to);
  if (to == NULL) {
    return no_memory(e);
  }
  holdfast__v1__stage_output__init(to);
  to->partitions = from->partitions;
  to->ordered = from->ordered;
  to->budget_bytes = from->budget_bytes;
  to->batch_bytes = from->batch_bytes;
  to->block_bytes = from->block_bytes;
  to->has_durable = 1;
  to->durable = from->durable;
  to->has_held = 1;
  to->held = from->held;
  to->has_compression = 1;
  to->compression = (uint32_t)from->compression;
  to->n_watched = from->n_watched;
  to->watched = (uint32_t *)from->watched;
  plan->output = to;
  return schema_to_message(&from->columns, STAGE_MOST_TYPE_LEVELS, e->memory, &to->columns, e->error);
}

static hf_status encode_settings(encoder *e, const stage_plan *from, Holdfast__V1__StagePlan *to) {
  to->n_settings = from->n_settings;
  to->settings =
      (Holdfast__V1__Setting **)message_pointers(e->memory, from->n_settings, sizeof **to->settings);
  if (to->settings == NULL) {
    return no_memory(e);
  }
  for (size_t i = 0; i < from->n_settings; i++) {
    holdfast__v1__setting__init(to->settings[i]);
    to->settings[i]->name = (char *)from->settings[i].name;
    to->settings[i]->value = (char *)from->settings[i].value;
  }
  return HF_OK;
}

static hf_status encode_plan(encoder *e, const stage_plan *from, Holdfast__V1__StagePlan *to) {
  holdfast__v1__stage_plan__init(to);
  to->version = STAGE_VERSION;
  to->session = (char *)from->session.text;
  to->job = from->job.value;
  to->stage = from->stage.value;
  to->n_allowed_dirs = from->n_allowed_dirs;
  to->allowed_dirs = (char **)from->allowed_dirs;
  HF_TRY(encode_pieces(e, from, to));
  HF_TRY(encode_inputs(e, from, to));
  HF_TRY(encode_output(e, &from->output, to));
  return encode_settings(e, from, to);
}

static void encode_block(const block_ref *from, Holdfast__V1__BlockRef *to) {
  holdfast__v1__block_ref__init(to);
  to->session = (char *)from->session.text;
  to->job = from->job.value;
  to->stage = from->stage.value;
  to->task = from->task.value;
  to->attempt = from->attempt.value;
  to->has_partition_first = to->has_partition_count = 1;
  to->partition_first = from->partition_first;
  to->partition_count = from->partition_count;
  to->has_share_first = to->has_share_count = to->has_share_of = from->share_of > 0;
  to->share_first = from->share_first;
  to->share_count = from->share_count;
  to->share_of = from->share_of;
}

static hf_status encode_ranges(encoder *e, const task_input *from, Holdfast__V1__TaskInput *to) {
  to->n_ranges = from->ranges == NULL ? 0 : from->n_files;
  to->ranges = (Holdfast__V1__RowRange **)message_pointers(e->memory, to->n_ranges, sizeof **to->ranges);
  if (to->ranges == NULL) {
    return no_memory(e);
  }
  for (size_t i = 0; i < to->n_ranges; i++) {
    holdfast__v1__row_range__init(to->ranges[i]);
    to->ranges[i]->first = from->ranges[i].first;
    to->ranges[i]->count = from->ranges[i].count;
  }
  return HF_OK;
}

static hf_status encode_task_input(encoder *e, const task_input *from, Holdfast__V1__TaskInput *to) {
  holdfast__v1__task_input__init(to);
  to->n_files = from->n_files;
  to->files = (char **)from->files;
  to->n_blocks = from->n_blocks;
  to->blocks = (Holdfast__V1__BlockRef **)message_pointers(e->memory, from->n_blocks, sizeof **to->blocks);
  if (to->blocks == NULL) {
    return no_memory(e);
  }
  for (size_t i = 0; i < from->n_blocks; i++) {
    encode_block(&from->blocks[i], to->blocks[i]);
  }
  return encode_ranges(e, from, to);
}

static hf_status encode_spec(encoder *e, const task_spec *from, Holdfast__V1__TaskSpec *to) {
  holdfast__v1__task_spec__init(to);
  to->version = STAGE_VERSION;
  to->job = from->job.value;
  to->stage = from->stage.value;
  to->task = from->task.value;
  to->attempt = from->attempt.value;
  to->n_inputs = from->n_inputs;
  to->inputs = (Holdfast__V1__TaskInput **)message_pointers(e->memory, from->n_inputs, sizeof **to->inputs);
  if (to->inputs == NULL) {
    return no_memory(e);
  }
  for (size_t i = 0; i < from->n_inputs; i++) {
    HF_TRY(encode_task_input(e, &from->inputs[i], to->inputs[i]));
  }
  return HF_OK;
}

/* Appends the packed message; a limit that the other side would refuse is found here. */
static hf_status message_pack(encoder *e, const ProtobufCMessage *message, const char *what, buf *out) {
  size_t length = protobuf_c_message_get_packed_size(message);
  if (length > STAGE_LARGEST_BYTES) {
    return error_set(e->error, HF_E_LIMIT, "%s is larger than %zu bytes: %zu", what, STAGE_LARGEST_BYTES,
                     length);
  }
  char *room = buf_reserve(out, length);
  if (room == NULL) {
    return no_memory(e);
  }
  protobuf_c_message_pack(message, (uint8_t *)room);
  HF_TRY(stage_wire_check(message->descriptor, what, room, length, e->error));
  out->length += length;
  room[length] = '\0';
  return HF_OK;
}

hf_status stage_plan_pack(const stage_plan *plan, buf *out, hf_error *error) {
  encoder e = {arena_new(), error};
  if (e.memory == NULL) {
    return no_memory(&e);
  }
  Holdfast__V1__StagePlan message;
  hf_status status = encode_plan(&e, plan, &message);
  if (status == HF_OK) {
    status = message_pack(&e, &message.base, "a stage plan", out);
  }
  arena_free(e.memory);
  return status;
}

hf_status task_spec_pack(const task_spec *spec, buf *out, hf_error *error) {
  encoder e = {arena_new(), error};
  if (e.memory == NULL) {
    return no_memory(&e);
  }
  Holdfast__V1__TaskSpec message;
  hf_status status = encode_spec(&e, spec, &message);
  if (status == HF_OK) {
    status = message_pack(&e, &message.base, "a task spec", out);
  }
  arena_free(e.memory);
  return status;
}
