/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of declarations and entries. Thread: any. */
#include "record.h"

#include <string.h>

static ProtobufCBinaryData bytes_of(const void *bytes, size_t length) {
  return (ProtobufCBinaryData){.len = length, .data = (uint8_t *)bytes};
}

/* ------------------------------------------------------------- declarations */

static hf_status pack_declaration(const declaration *row, arena *a, buf *out, hf_error *error) {
  Holdfast__V1__JournalDeclaration to = HOLDFAST__V1__JOURNAL_DECLARATION__INIT;
  to.key = (char *)row->key.text;
  to.session = (char *)row->session.text;
  to.fingerprint = (char *)row->fingerprint;
  to.level = (char *)row->level;
  to.name = (char *)row->name;
  to.lineage_cut = row->lineage == LINEAGE_CUT;
  to.by_content = row->by_content;
  to.released = row->released;
  to.declared_us = row->declared_us;
  to.has_canonical = row->canonical != NULL;
  to.canonical = bytes_of(row->canonical, row->canonical_bytes);
  to.has_relation = row->relation != NULL;
  to.relation = bytes_of(row->relation, row->relation_bytes);
  to.has_settings = row->settings != NULL;
  to.settings = bytes_of(row->settings, row->settings_bytes);
  HF_TRY(schema_to_message(&row->columns, RECORD_DEEPEST_TYPE, a, &to.columns, error));
  return record_pack_message(&to.base, out, error);
}

hf_status record_pack_declaration(const declaration *row, buf *out, hf_error *error) {
  arena *a = arena_new();
  hf_status status = a == NULL ? record_no_memory(error) : pack_declaration(row, a, out, error);
  arena_free(a);
  return status;
}

hf_status record_unpack_declaration(const store_row *row, arena *a, declaration *out, hf_error *error) {
  ProtobufCMessage *message = NULL;
  HF_TRY(record_unpack_message(&holdfast__v1__journal_declaration__descriptor, row, a, &message, error));
  const Holdfast__V1__JournalDeclaration *from = (Holdfast__V1__JournalDeclaration *)message;
  *out = (declaration){
      .name = from->name,
      .lineage = from->lineage_cut ? LINEAGE_CUT : LINEAGE_KEPT,
      .by_content = from->by_content != 0,
      .released = from->released != 0,
      .declared_us = from->declared_us,
      .canonical = from->has_canonical ? from->canonical.data : NULL,
      .canonical_bytes = from->canonical.len,
      .relation = from->has_relation ? from->relation.data : NULL,
      .relation_bytes = from->relation.len,
      .settings = from->has_settings ? (const char *)from->settings.data : NULL,
      .settings_bytes = from->settings.len,
  };
  HF_TRY(record_decode_uuid(from->key, &out->key, error));
  HF_TRY(record_decode_uuid(from->session, &out->session, error));
  HF_TRY(record_decode_text(from->fingerprint, out->fingerprint, sizeof out->fingerprint, error));
  HF_TRY(record_decode_text(from->level, out->level, sizeof out->level, error));
  return record_decode_schema(from->columns, a, &out->columns, error);
}

/* ------------------------------------------------------------------ entries */

static hf_status encode_locations(const entry_output *from, arena *a, Holdfast__V1__JournalEntry *to,
                                  hf_error *error) {
  to->n_locations = from->n_locations;
  to->locations =
      (Holdfast__V1__JournalLocation **)message_pointers(a, from->n_locations, sizeof **to->locations);
  if (to->locations == NULL) {
    return record_no_memory(error);
  }
  for (size_t i = 0; i < from->n_locations; i++) {
    Holdfast__V1__JournalLocation *at = to->locations[i];
    holdfast__v1__journal_location__init(at);
    at->job = from->locations[i].job.value;
    at->stage = from->locations[i].stage.value;
    at->task = from->locations[i].task.value;
    at->attempt = from->locations[i].attempt.value;
    at->rows = from->locations[i].rows;
    at->bytes = from->locations[i].bytes;
  }
  return HF_OK;
}

static hf_status encode_sources(const entry_output *from, arena *a, Holdfast__V1__JournalEntry *to,
                                hf_error *error) {
  to->n_sources = from->n_sources;
  to->sources = (Holdfast__V1__JournalSource **)message_pointers(a, from->n_sources, sizeof **to->sources);
  if (to->sources == NULL) {
    return record_no_memory(error);
  }
  for (size_t i = 0; i < from->n_sources; i++) {
    Holdfast__V1__JournalSource *at = to->sources[i];
    holdfast__v1__journal_source__init(at);
    at->path = (char *)from->sources[i].path;
    at->bytes = from->sources[i].bytes;
    at->mtime_ns = from->sources[i].mtime_ns;
    at->etag = (char *)from->sources[i].etag;
  }
  return HF_OK;
}

/* Sort keys and partitioning. */
static hf_status encode_shape(const entry_output *from, arena *a, Holdfast__V1__JournalEntry *to,
                              hf_error *error) {
  to->n_sort = from->n_sort;
  to->sort = (Holdfast__V1__JournalSortKey **)message_pointers(a, from->n_sort, sizeof **to->sort);
  Holdfast__V1__JournalPartitioning *spread = arena_alloc(a, sizeof *spread);
  if (to->sort == NULL || spread == NULL) {
    return record_no_memory(error);
  }
  for (size_t i = 0; i < from->n_sort; i++) {
    holdfast__v1__journal_sort_key__init(to->sort[i]);
    to->sort[i]->column = from->sort[i].column;
    to->sort[i]->is_descending = from->sort[i].is_descending;
    to->sort[i]->nulls_first = from->sort[i].nulls_first;
  }
  if (from->partitioning.n_columns > 0) {
    holdfast__v1__journal_partitioning__init(spread);
    spread->n_columns = from->partitioning.n_columns;
    spread->columns = (uint32_t *)from->partitioning.columns;
    spread->n = from->partitioning.n;
    spread->hash_version = from->partitioning.hash_version;
    spread->has_in_blocks = spread->in_blocks = from->partitioning.in_blocks;
    to->partitioning = spread;
  }
  return HF_OK;
}

static hf_status pack_entry(const entry_view *row, arena *a, buf *out, hf_error *error) {
  const entry_output *from = &row->output;
  Holdfast__V1__JournalEntry to = HOLDFAST__V1__JOURNAL_ENTRY__INIT;
  to.key = (char *)row->key.text;
  to.session = (char *)row->session.text;
  to.job = row->job.value;
  to.generation = row->generation;
  to.hits = row->hits;
  to.last_read_us = row->last_read_us;
  to.has_metadata = from->metadata != NULL;
  to.metadata = bytes_of(from->metadata, from->metadata_bytes);
  to.rows = from->rows;
  to.bytes = from->bytes;
  to.ordered = from->ordered;
  to.indeterminate = from->indeterminate;
  to.fingerprint = (char *)from->fingerprint;
  to.cost_us = from->cost_us;
  to.created_us = from->created_us;
  HF_TRY(schema_to_message(&from->columns, RECORD_DEEPEST_TYPE, a, &to.columns, error));
  HF_TRY(encode_locations(from, a, &to, error));
  HF_TRY(encode_sources(from, a, &to, error));
  HF_TRY(encode_shape(from, a, &to, error));
  return record_pack_message(&to.base, out, error);
}

hf_status record_pack_entry(const entry_view *row, buf *out, hf_error *error) {
  arena *a = arena_new();
  hf_status status = a == NULL ? record_no_memory(error) : pack_entry(row, a, out, error);
  arena_free(a);
  return status;
}

static hf_status decode_lists(const Holdfast__V1__JournalEntry *from, arena *a, entry_output *out,
                              hf_error *error) {
  entry_location *locations = arena_array(a, from->n_locations, sizeof *locations);
  entry_source *sources = arena_array(a, from->n_sources, sizeof *sources);
  entry_sort_key *sort = arena_array(a, from->n_sort, sizeof *sort);
  if (locations == NULL || sources == NULL || sort == NULL) {
    return record_no_memory(error);
  }
  for (size_t i = 0; i < from->n_locations; i++) {
    const Holdfast__V1__JournalLocation *at = from->locations[i];
    locations[i] = (entry_location){.job = {at->job},
                                    .stage = {at->stage},
                                    .task = {at->task},
                                    .attempt = {at->attempt},
                                    .rows = at->rows,
                                    .bytes = at->bytes};
  }
  for (size_t i = 0; i < from->n_sources; i++) {
    const Holdfast__V1__JournalSource *at = from->sources[i];
    sources[i] = (entry_source){at->path, at->bytes, at->mtime_ns, at->etag};
  }
  for (size_t i = 0; i < from->n_sort; i++) {
    const Holdfast__V1__JournalSortKey *at = from->sort[i];
    if (at->column >= from->columns->n_columns) {
      return record_malformed("a sort key", error);
    }
    sort[i] = (entry_sort_key){at->column, at->is_descending != 0, at->nulls_first != 0};
  }
  out->locations = locations;
  out->n_locations = from->n_locations;
  out->sources = sources;
  out->n_sources = from->n_sources;
  out->sort = sort;
  out->n_sort = from->n_sort;
  return HF_OK;
}

static hf_status decode_partitioning(const Holdfast__V1__JournalEntry *from, entry_partitioning *out,
                                     hf_error *error) {
  const Holdfast__V1__JournalPartitioning *spread = from->partitioning;
  if (spread == NULL) {
    return HF_OK;
  }
  for (size_t i = 0; i < spread->n_columns; i++) {
    if (spread->columns[i] >= from->columns->n_columns) {
      return record_malformed("a partitioning", error);
    }
  }
  bool in_blocks = spread->has_in_blocks && spread->in_blocks;
  if (spread->n == 0 || (!in_blocks && spread->n != from->n_locations)) {
    return record_malformed("a partitioning", error);
  }
  *out = (entry_partitioning){spread->columns, spread->n_columns, spread->n, spread->hash_version, in_blocks};
  return HF_OK;
}

hf_status record_unpack_entry(const store_row *row, arena *a, entry_view *out, hf_error *error) {
  ProtobufCMessage *message = NULL;
  HF_TRY(record_unpack_message(&holdfast__v1__journal_entry__descriptor, row, a, &message, error));
  const Holdfast__V1__JournalEntry *from = (Holdfast__V1__JournalEntry *)message;
  *out = (entry_view){.state = ENTRY_MATERIALISED,
                      .job = {from->job},
                      .generation = from->generation,
                      .hits = from->hits,
                      .last_read_us = from->last_read_us,
                      .last_drop = ""};
  out->output = (entry_output){.metadata = from->has_metadata ? from->metadata.data : NULL,
                               .metadata_bytes = from->metadata.len,
                               .rows = from->rows,
                               .bytes = from->bytes,
                               .ordered = from->ordered != 0,
                               .indeterminate = from->indeterminate != 0,
                               .cost_us = from->cost_us,
                               .created_us = from->created_us};
  HF_TRY(record_decode_uuid(from->key, &out->key, error));
  HF_TRY(record_decode_uuid(from->session, &out->session, error));
  HF_TRY(
      record_decode_text(from->fingerprint, out->output.fingerprint, sizeof out->output.fingerprint, error));
  HF_TRY(decode_lists(from, a, &out->output, error));
  HF_TRY(decode_partitioning(from, &out->output.partitioning, error));
  return record_decode_schema(from->columns, a, &out->output.columns, error);
}
