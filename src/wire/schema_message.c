/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns as a message. Reading one back is its readers' own: what a peer sends
 * is not trusted as what the journal kept under a checksum.
 * Thread: any.
 */
#include "wire/schema_message.h"

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to encode columns");
}

void **message_pointers(arena *a, size_t count, size_t bytes) {
  void **pointers = arena_array(a, count, sizeof *pointers);
  char *structs = arena_array(a, count, bytes);
  if (pointers == NULL || structs == NULL) {
    return NULL;
  }
  for (size_t i = 0; i < count; i++) {
    pointers[i] = structs + i * bytes;
  }
  return pointers;
}

/* `left`: levels that may follow, this one included. */
static hf_status type_to_message(const data_type *from, unsigned left, arena *a, Holdfast__V1__DataType *to,
                                 hf_error *error) {
  if (left == 0) {
    return HF_E_LIMIT; /* the caller knows how many there were */
  }
  holdfast__v1__data_type__init(to);
  to->kind = (uint32_t)from->kind;
  to->has_width = to->has_scale = from->kind == TYPE_DECIMAL;
  to->width = from->width;
  to->scale = from->scale;
  to->has_array_size = from->kind == TYPE_ARRAY;
  to->array_size = from->array_size;
  to->n_names = from->n_names;
  to->names = (char **)from->names;
  to->n_children = from->n_children;
  to->children = (Holdfast__V1__DataType **)message_pointers(a, from->n_children, sizeof **to->children);
  if (to->children == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < from->n_children; i++) {
    HF_TRY(type_to_message(from->children[i], left - 1, a, to->children[i], error));
  }
  return HF_OK;
}

hf_status schema_to_message(const schema *from, unsigned deepest, arena *a, Holdfast__V1__Schema **out,
                            hf_error *error) {
  Holdfast__V1__Schema *to = arena_alloc(a, sizeof *to);
  Holdfast__V1__DataType *types = arena_array(a, from->n_columns, sizeof *types);
  if (to == NULL || types == NULL) {
    return no_memory(error);
  }
  holdfast__v1__schema__init(to);
  to->n_columns = from->n_columns;
  to->columns = (Holdfast__V1__Column **)message_pointers(a, from->n_columns, sizeof **to->columns);
  if (to->columns == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < from->n_columns; i++) {
    holdfast__v1__column__init(to->columns[i]);
    to->columns[i]->name = (char *)from->columns[i].name;
    to->columns[i]->type = &types[i];
    hf_status status = type_to_message(from->columns[i].type, deepest, a, &types[i], error);
    if (status == HF_E_LIMIT) {
      return error_set(error, status, "types nest deeper than %u levels", deepest);
    }
    HF_TRY(status);
  }
  *out = to;
  return HF_OK;
}
