/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes → structs: stage_wire.c has walked over them, protobuf-c unpacks them,
 * and here they are copied into the caller's arena while their meaning is
 * checked: ids, UUIDs, type trees, indexes of inputs, partitions. Encoding is in
 * stage_encode.c.
 * Thread: any.
 */
#include "stage/stage_internal.h"

#include "base/mem.h"

#include "holdfast/v1/stage.pb-c.h"

typedef struct decoder {
  arena *memory;
  hf_error *error;
} decoder;

static hf_status no_memory(decoder *d) {
  return error_set(d->error, HF_E_OUT_OF_MEMORY, "no memory to decode a stage plan");
}

static hf_status copy_text(decoder *d, const char *from, const char **out) {
  *out = arena_strdup(d->memory, from);
  return *out == NULL ? no_memory(d) : HF_OK;
}

static hf_status copy_texts(decoder *d, char *const *from, size_t count, const char *const **out) {
  const char **texts = arena_array(d->memory, count, sizeof *texts);
  if (texts == NULL) {
    return no_memory(d);
  }
  for (size_t i = 0; i < count; i++) {
    HF_TRY(copy_text(d, from[i], &texts[i]));
  }
  *out = texts;
  return HF_OK;
}

static hf_status decode_uuid(decoder *d, const char *text, const char *of, uuid *out) {
  return uuid_parse(text, out) ? HF_OK : error_set(d->error, HF_E_PROTOCOL, "no UUID as %s: %.40s", of, text);
}

static hf_status check_id(decoder *d, uint64_t value, const char *of) {
  return value > 0 ? HF_OK : error_set(d->error, HF_E_PROTOCOL, "ids count from 1, found 0 as %s", of);
}

/* ------------------------------------------------------------------- types */

static hf_status check_shape(decoder *d, const Holdfast__V1__DataType *from, size_t least, size_t most,
                             bool named) {
  const char *name = type_kind_name((type_kind)from->kind);
  if (from->n_children < least || from->n_children > most) {
    return error_set(d->error, HF_E_PROTOCOL, "a type cannot have so many children: %s with %zu", name,
                     from->n_children);
  }
  if (from->kind != TYPE_ENUM && from->n_names != (named ? from->n_children : 0)) {
    return error_set(d->error, HF_E_PROTOCOL,
                     "a type cannot have so many names: %s with %zu children and %zu names", name,
                     from->n_children, from->n_names);
  }
  return HF_OK;
}

static hf_status check_type(decoder *d, const Holdfast__V1__DataType *from) {
  switch (from->kind) {
    case TYPE_DECIMAL:
      if (from->width < 1 || from->width > STAGE_MOST_DECIMAL_DIGITS || from->scale > from->width) {
        return error_set(d->error, HF_E_PROTOCOL, "no such type: DECIMAL(%u,%u)", from->width, from->scale);
      }
      return check_shape(d, from, 0, 0, false);
    case TYPE_ARRAY:
      if (from->array_size == 0) {
        return error_set(d->error, HF_E_PROTOCOL, "no such type: an ARRAY of 0 elements");
      }
      return check_shape(d, from, 1, 1, false);
    case TYPE_LIST:
      return check_shape(d, from, 1, 1, false);
    case TYPE_MAP:
      return check_shape(d, from, 2, 2, false);
    case TYPE_STRUCT:
      return check_shape(d, from, 0, STAGE_MOST_ELEMENTS, true);
    case TYPE_UNION:
      return check_shape(d, from, 1, STAGE_MOST_UNION_MEMBERS, true);
    default:
      return check_shape(d, from, 0, 0, false);
  }
}

static hf_status decode_type(decoder *d, const Holdfast__V1__DataType *from, const data_type **out) {
  if (from->kind >= TYPE_KIND_COUNT) {
    return error_set(d->error, HF_E_PROTOCOL, "no type has this number: %u", from->kind);
  }
  HF_TRY(check_type(d, from));
  data_type *to = arena_alloc(d->memory, sizeof *to);
  const data_type **children = arena_array(d->memory, from->n_children, sizeof(void *));
  if (to == NULL || children == NULL) {
    return no_memory(d);
  }
  to->kind = (type_kind)from->kind;
  if (to->kind == TYPE_DECIMAL) {
    to->width = (uint8_t)from->width;
    to->scale = (uint8_t)from->scale;
  }
  to->array_size = to->kind == TYPE_ARRAY ? from->array_size : 0;
  to->n_names = from->n_names;
  HF_TRY(copy_texts(d, from->names, from->n_names, &to->names));
  to->n_children = from->n_children;
  to->children = children;
  for (size_t i = 0; i < from->n_children; i++) {
    HF_TRY(decode_type(d, from->children[i], &children[i]));
  }
  *out = to;
  return HF_OK;
}

static hf_status decode_schema(decoder *d, const Holdfast__V1__Schema *from, schema *out) {
  column *columns = arena_array(d->memory, from->n_columns, sizeof *columns);
  if (columns == NULL) {
    return no_memory(d);
  }
  for (size_t i = 0; i < from->n_columns; i++) {
    HF_TRY(copy_text(d, from->columns[i]->name, &columns[i].name));
    HF_TRY(decode_type(d, from->columns[i]->type, &columns[i].type));
  }
  *out = (schema){from->n_columns, columns};
  return HF_OK;
}

/* -------------------------------------------------------------- stage plan */

static hf_status decode_pieces(decoder *d, const Holdfast__V1__StagePlan *from, stage_plan *to) {
  stage_piece *pieces = arena_array(d->memory, from->n_sql, sizeof *pieces);
  if (pieces == NULL) {
    return no_memory(d);
  }
  for (size_t i = 0; i < from->n_sql; i++) {
    const Holdfast__V1__SqlPiece *piece = from->sql[i];
    if (piece->piece_case == HOLDFAST__V1__SQL_PIECE__PIECE_TEXT) {
      HF_TRY(copy_text(d, piece->text, &pieces[i].text));
    } else if (piece->piece_case == HOLDFAST__V1__SQL_PIECE__PIECE_INPUT && piece->input < from->n_inputs) {
      pieces[i].input = piece->input;
    } else {
      return error_set(d->error, HF_E_PROTOCOL, "a piece of SQL is neither text nor one of %zu inputs",
                       from->n_inputs);
    }
  }
  if (from->n_sql == 0) {
    return error_set(d->error, HF_E_PROTOCOL, "no SQL");
  }
  to->n_pieces = from->n_sql;
  to->pieces = pieces;
  return HF_OK;
}

static hf_status decode_filters(decoder *d, const Holdfast__V1__StageInput *from, stage_input *to) {
  stage_filter *filters = arena_array(d->memory, from->n_filters, sizeof *filters);
  if (filters == NULL) {
    return no_memory(d);
  }
  for (size_t i = 0; i < from->n_filters; i++) {
    const Holdfast__V1__BlockFilter *f = from->filters[i];
    if (f->column >= to->columns.n_columns) {
      return error_set(d->error, HF_E_PROTOCOL, "a filter of blocks is of column %u of %zu", f->column,
                       to->columns.n_columns);
    }
    filters[i] = (stage_filter){f->column, f->op, f->key_high, f->key_low};
  }
  to->n_filters = from->n_filters;
  to->filters = filters;
  return HF_OK;
}

static hf_status decode_input(decoder *d, const Holdfast__V1__StageInput *from, stage_input *to) {
  to->kind = from->kind == HOLDFAST__V1__STAGE_INPUT__KIND__FILES ? STAGE_INPUT_FILES : STAGE_INPUT_BLOCKS;
  if (to->kind == STAGE_INPUT_FILES) {
    if (from->reader == NULL || from->held_key != NULL) {
      return error_set(d->error, HF_E_PROTOCOL, "an input of files needs a reader and has no held key");
    }
    HF_TRY(copy_text(d, from->reader, &to->reader));
  } else if (from->kind != HOLDFAST__V1__STAGE_INPUT__KIND__BLOCKS || from->reader != NULL) {
    return error_set(d->error, HF_E_PROTOCOL, "an input is neither files nor blocks: kind %d",
                     (int)from->kind);
  }
  if (from->held_key != NULL) {
    HF_TRY(decode_uuid(d, from->held_key, "an input's held key", &to->held_key));
  }
  to->rows = from->rows;
  to->ordered = from->ordered != 0;
  to->verify = from->verify != 0;
  HF_TRY(decode_schema(d, from->columns, &to->columns));
  return decode_filters(d, from, to);
}

static hf_status decode_inputs(decoder *d, const Holdfast__V1__StagePlan *from, stage_plan *to) {
  stage_input *inputs = arena_array(d->memory, from->n_inputs, sizeof *inputs);
  if (inputs == NULL) {
    return no_memory(d);
  }
  for (size_t i = 0; i < from->n_inputs; i++) {
    HF_TRY(decode_input(d, from->inputs[i], &inputs[i]));
  }
  to->n_inputs = from->n_inputs;
  to->inputs = inputs;
  return HF_OK;
}

static hf_status decode_watched(decoder *d, const Holdfast__V1__StageOutput *from, stage_output *to) {
  if (from->n_watched > to->columns.n_columns) {
    return error_set(d->error, HF_E_PROTOCOL, "an output of %zu columns watches %zu", to->columns.n_columns,
                     from->n_watched);
  }
  uint32_t *watched = arena_array(d->memory, from->n_watched, sizeof *watched);
  if (watched == NULL) {
    return no_memory(d);
  }
  for (size_t i = 0; i < from->n_watched; i++) {
    if (from->watched[i] >= to->columns.n_columns) {
      return error_set(d->error, HF_E_PROTOCOL, "an output watches column %u of %zu", from->watched[i],
                       to->columns.n_columns);
    }
    watched[i] = from->watched[i];
  }
  to->n_watched = from->n_watched;
  to->watched = watched;
  return HF_OK;
}

static hf_status decode_output(decoder *d, const Holdfast__V1__StageOutput *from, stage_output *to) {
  if (from->partitions < 1 || from->partitions > STAGE_MOST_PARTITIONS) {
    return error_set(d->error, HF_E_PROTOCOL, "partitions outside 1 to %d: %u", STAGE_MOST_PARTITIONS,
                     from->partitions);
  }
  if (from->budget_bytes == 0 || from->batch_bytes == 0 || from->block_bytes == 0) {
    return error_set(d->error, HF_E_PROTOCOL, "an output with a budget, batch or block of 0 bytes");
  }
  if (from->compression > IPC_COMPRESSION_LZ4) {
    return error_set(d->error, HF_E_PROTOCOL, "an output with a compression that is not known: %u",
                     from->compression);
  }
  to->compression = (ipc_compression)from->compression;
  to->partitions = from->partitions;
  to->ordered = from->ordered != 0;
  to->durable = from->durable != 0;
  to->held = from->held != 0;
  to->budget_bytes = from->budget_bytes;
  to->batch_bytes = from->batch_bytes;
  to->block_bytes = from->block_bytes;
  HF_TRY(decode_schema(d, from->columns, &to->columns));
  return decode_watched(d, from, to);
}

static hf_status decode_settings(decoder *d, const Holdfast__V1__StagePlan *from, stage_plan *to) {
  stage_setting *settings = arena_array(d->memory, from->n_settings, sizeof *settings);
  if (settings == NULL) {
    return no_memory(d);
  }
  for (size_t i = 0; i < from->n_settings; i++) {
    if (from->settings[i]->name[0] == '\0') {
      return error_set(d->error, HF_E_PROTOCOL, "a setting without a name");
    }
    HF_TRY(copy_text(d, from->settings[i]->name, &settings[i].name));
    HF_TRY(copy_text(d, from->settings[i]->value, &settings[i].value));
  }
  to->n_settings = from->n_settings;
  to->settings = settings;
  return HF_OK;
}

static hf_status decode_dirs(decoder *d, const Holdfast__V1__StagePlan *from, stage_plan *to) {
  for (size_t i = 0; i < from->n_allowed_dirs; i++) {
    if (from->allowed_dirs[i][0] != '/') {
      return error_set(d->error, HF_E_PROTOCOL, "an allowed directory is not absolute: %s",
                       from->allowed_dirs[i]);
    }
  }
  to->n_allowed_dirs = from->n_allowed_dirs;
  return copy_texts(d, from->allowed_dirs, from->n_allowed_dirs, &to->allowed_dirs);
}

static hf_status decode_plan(decoder *d, const Holdfast__V1__StagePlan *from, stage_plan *to) {
  HF_TRY(decode_uuid(d, from->session, "the session", &to->session));
  HF_TRY(check_id(d, from->job, "the job"));
  HF_TRY(check_id(d, from->stage, "the stage"));
  to->job = (job_id){from->job};
  to->stage = (stage_id){from->stage};
  HF_TRY(decode_pieces(d, from, to));
  HF_TRY(decode_inputs(d, from, to));
  HF_TRY(decode_output(d, from->output, &to->output));
  HF_TRY(decode_settings(d, from, to));
  return decode_dirs(d, from, to);
}

/* --------------------------------------------------------------- task spec */

static hf_status decode_block(decoder *d, const Holdfast__V1__BlockRef *from, block_ref *to) {
  HF_TRY(decode_uuid(d, from->session, "the session of a block", &to->session));
  HF_TRY(check_id(d, from->job, "the job of a block"));
  HF_TRY(check_id(d, from->stage, "the stage of a block"));
  HF_TRY(check_id(d, from->task, "the task of a block"));
  HF_TRY(check_id(d, from->attempt, "the attempt of a block"));
  if ((uint64_t)from->partition_first + from->partition_count > STAGE_MOST_PARTITIONS) {
    return error_set(d->error, HF_E_PROTOCOL, "partitions of a block beyond %d: %u from %u",
                     STAGE_MOST_PARTITIONS, from->partition_count, from->partition_first);
  }
  if ((uint64_t)from->share_first + from->share_count > from->share_of) {
    return error_set(d->error, HF_E_PROTOCOL, "a share of a block goes beyond the last of %u: %u from %u",
                     from->share_of, from->share_count, from->share_first);
  }
  to->job = (job_id){from->job};
  to->stage = (stage_id){from->stage};
  to->task = (task_id){from->task};
  to->attempt = (attempt_id){from->attempt};
  to->partition_first = from->partition_first;
  to->partition_count = from->partition_count;
  to->share_first = from->share_first;
  to->share_count = from->share_count;
  to->share_of = from->share_of;
  return HF_OK;
}

static hf_status decode_ranges(decoder *d, const Holdfast__V1__TaskInput *from, task_input *to) {
  if (from->n_ranges == 0) {
    return HF_OK;
  }
  if (from->n_ranges != from->n_files) {
    return error_set(d->error, HF_E_PROTOCOL, "%zu files have %zu row ranges", from->n_files, from->n_ranges);
  }
  row_range *ranges = arena_array(d->memory, from->n_ranges, sizeof *ranges);
  if (ranges == NULL) {
    return no_memory(d);
  }
  for (size_t i = 0; i < from->n_ranges; i++) {
    ranges[i] = (row_range){from->ranges[i]->first, from->ranges[i]->count};
    if (ranges[i].first > INT64_MAX || ranges[i].count > INT64_MAX - ranges[i].first) {
      return error_set(d->error, HF_E_PROTOCOL, "a row range is too large");
    }
  }
  to->ranges = ranges;
  return HF_OK;
}

static hf_status decode_task_input(decoder *d, const Holdfast__V1__TaskInput *from, task_input *to) {
  block_ref *blocks = arena_array(d->memory, from->n_blocks, sizeof *blocks);
  if (blocks == NULL) {
    return no_memory(d);
  }
  for (size_t i = 0; i < from->n_blocks; i++) {
    HF_TRY(decode_block(d, from->blocks[i], &blocks[i]));
  }
  to->n_blocks = from->n_blocks;
  to->blocks = blocks;
  to->n_files = from->n_files;
  HF_TRY(decode_ranges(d, from, to));
  return copy_texts(d, from->files, from->n_files, &to->files);
}

static hf_status decode_spec(decoder *d, const Holdfast__V1__TaskSpec *from, task_spec *to) {
  HF_TRY(check_id(d, from->job, "the job"));
  HF_TRY(check_id(d, from->stage, "the stage"));
  HF_TRY(check_id(d, from->task, "the task"));
  HF_TRY(check_id(d, from->attempt, "the attempt"));
  to->job = (job_id){from->job};
  to->stage = (stage_id){from->stage};
  to->task = (task_id){from->task};
  to->attempt = (attempt_id){from->attempt};
  task_input *inputs = arena_array(d->memory, from->n_inputs, sizeof *inputs);
  if (inputs == NULL) {
    return no_memory(d);
  }
  for (size_t i = 0; i < from->n_inputs; i++) {
    HF_TRY(decode_task_input(d, from->inputs[i], &inputs[i]));
  }
  to->n_inputs = from->n_inputs;
  to->inputs = inputs;
  return HF_OK;
}

/* ------------------------------------------------------------------ unpack */

static void *unpack_alloc(void *context, size_t bytes) {
  bool *failed = context;
  void *block = mem_alloc(bytes);
  *failed = *failed || block == NULL;
  return block;
}

static void unpack_free(void *context, void *block) {
  (void)context;
  mem_free(block);
}

/* Checks and unpacks; *out is released by message_free. */
static hf_status message_unpack(const ProtobufCMessageDescriptor *type, const char *what, const void *bytes,
                                size_t length, ProtobufCMessage **out, hf_error *error) {
  HF_TRY(stage_wire_check(type, what, bytes, length, error));
  bool no_memory_left = false;
  ProtobufCAllocator allocator = {unpack_alloc, unpack_free, &no_memory_left};
  *out = protobuf_c_message_unpack(type, &allocator, length, bytes);
  if (*out != NULL) {
    return HF_OK;
  }
  return no_memory_left ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to decode %s", what)
                        : error_set(error, HF_E_PROTOCOL, "protobuf cannot decode %s", what);
}

static void message_free(ProtobufCMessage *message) {
  bool no_memory_left = false;
  ProtobufCAllocator allocator = {unpack_alloc, unpack_free, &no_memory_left};
  protobuf_c_message_free_unpacked(message, &allocator);
}

hf_status stage_plan_unpack(const void *bytes, size_t length, arena *a, stage_plan *out, hf_error *error) {
  ProtobufCMessage *message = NULL;
  HF_TRY(
      message_unpack(&holdfast__v1__stage_plan__descriptor, "a stage plan", bytes, length, &message, error));
  decoder d = {a, error};
  stage_plan plan = {0};
  hf_status status = decode_plan(&d, (const Holdfast__V1__StagePlan *)message, &plan);
  message_free(message);
  if (status == HF_OK) {
    *out = plan;
  } else {
    error_wrap(error, "a stage plan is not valid");
  }
  return status;
}

hf_status task_spec_unpack(const void *bytes, size_t length, arena *a, task_spec *out, hf_error *error) {
  ProtobufCMessage *message = NULL;
  HF_TRY(message_unpack(&holdfast__v1__task_spec__descriptor, "a task spec", bytes, length, &message, error));
  decoder d = {a, error};
  task_spec spec = {0};
  hf_status status = decode_spec(&d, (const Holdfast__V1__TaskSpec *)message, &spec);
  message_free(message);
  if (status == HF_OK) {
    *out = spec;
  } else {
    error_wrap(error, "a task spec is not valid");
  }
  return status;
}
