/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of declarations and of what a fill made, into an arena.
 * Thread: any.
 */
#include "hold/entry.h"

#include <string.h>

/* Copies n elements; NULL of none. False: no memory. */
static bool array_copy(arena *a, const void *from, size_t n, size_t element_bytes, const void **out) {
  if (n == 0 || from == NULL) {
    *out = NULL;
    return true;
  }
  void *to = arena_array(a, n, element_bytes);
  if (to == NULL) {
    return false;
  }
  memcpy(to, from, n * element_bytes);
  *out = to;
  return true;
}

static bool text_copy(arena *a, const char *from, const char **out) {
  *out = from == NULL ? NULL : arena_strdup(a, from);
  return from == NULL || *out != NULL;
}

static bool sources_copy(arena *a, const entry_output *from, entry_output *out) {
  entry_source *sources = NULL;
  if (from->n_sources > 0 && (sources = arena_array(a, from->n_sources, sizeof *sources)) == NULL) {
    return false;
  }
  for (size_t i = 0; i < from->n_sources; i++) {
    sources[i] = from->sources[i];
    if (!text_copy(a, from->sources[i].path, &sources[i].path) ||
        !text_copy(a, from->sources[i].etag, &sources[i].etag)) {
      return false;
    }
  }
  out->sources = sources;
  return true;
}

hf_status entry_output_copy(const entry_output *from, arena *a, entry_output *out, hf_error *error) {
  entry_output copy = *from;
  const void *metadata, *sort, *keys, *locations;
  if (!array_copy(a, from->metadata, from->metadata_bytes, 1, &metadata) ||
      !array_copy(a, from->sort, from->n_sort, sizeof *from->sort, &sort) ||
      !array_copy(a, from->partitioning.columns, from->partitioning.n_columns, sizeof(uint32_t), &keys) ||
      !array_copy(a, from->locations, from->n_locations, sizeof *from->locations, &locations) ||
      !sources_copy(a, from, &copy)) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a held result");
  }
  HF_TRY(schema_copy(&from->columns, a, &copy.columns, error));
  copy.metadata = metadata;
  copy.sort = sort;
  copy.partitioning.columns = keys;
  copy.locations = locations;
  *out = copy;
  return HF_OK;
}

hf_status declaration_copy(const declaration *from, arena *a, declaration *out, hf_error *error) {
  declaration copy = *from;
  const void *canonical, *relation, *settings;
  if (!text_copy(a, from->name, &copy.name) ||
      !array_copy(a, from->canonical, from->canonical_bytes, 1, &canonical) ||
      !array_copy(a, from->relation, from->relation_bytes, 1, &relation) ||
      !array_copy(a, from->settings, from->settings_bytes, 1, &settings)) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a declaration");
  }
  HF_TRY(schema_copy(&from->columns, a, &copy.columns, error));
  copy.canonical = canonical;
  copy.relation = relation;
  copy.settings = settings;
  *out = copy;
  return HF_OK;
}
