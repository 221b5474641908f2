/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of sessions, names and client data. Their ids are the rows' owners and keys. Thread: any. */
#include "record.h"

static ProtobufCBinaryData bytes_of(const void *bytes, size_t length) {
  return (ProtobufCBinaryData){.len = length, .data = (uint8_t *)bytes};
}

/* ---------------------------------------------------------------- sessions */

static hf_status pack_session(const journal_session *row, arena *a, buf *out, hf_error *error) {
  Holdfast__V1__JournalSession to = HOLDFAST__V1__JOURNAL_SESSION__INIT;
  to.n_settings = row->n_settings;
  to.settings = (Holdfast__V1__Setting **)message_pointers(a, row->n_settings, sizeof **to.settings);
  if (to.settings == NULL) {
    return record_no_memory(error);
  }
  for (size_t i = 0; i < row->n_settings; i++) {
    holdfast__v1__setting__init(to.settings[i]);
    to.settings[i]->name = (char *)row->settings[i].key;
    to.settings[i]->value = (char *)row->settings[i].value;
  }
  return record_pack_message(&to.base, out, error);
}

hf_status record_pack_session(const journal_session *row, buf *out, hf_error *error) {
  arena *a = arena_new();
  hf_status status = a == NULL ? record_no_memory(error) : pack_session(row, a, out, error);
  arena_free(a);
  return status;
}

hf_status record_unpack_session(const store_row *row, arena *a, journal_session *out, hf_error *error) {
  ProtobufCMessage *message = NULL;
  HF_TRY(record_unpack_message(&holdfast__v1__journal_session__descriptor, row, a, &message, error));
  const Holdfast__V1__JournalSession *from = (Holdfast__V1__JournalSession *)message;
  hf_setting *settings = arena_array(a, from->n_settings, sizeof *settings);
  if (settings == NULL) {
    return record_no_memory(error);
  }
  for (size_t i = 0; i < from->n_settings; i++) {
    settings[i] = (hf_setting){from->settings[i]->name, from->settings[i]->value};
  }
  *out = (journal_session){.n_settings = from->n_settings, .settings = settings};
  return record_decode_uuid(row->key, &out->id, error);
}

/* ------------------------------------------------------------------- names */

hf_status record_pack_name(const journal_name *row, buf *out, hf_error *error) {
  Holdfast__V1__JournalName to = HOLDFAST__V1__JOURNAL_NAME__INIT;
  to.name = (char *)row->name;
  to.bound = bytes_of(row->bound, row->bound_bytes);
  to.has_plain = row->plain != NULL;
  to.plain = bytes_of(row->plain, row->plain_bytes);
  to.cache_made = row->cache_made;
  return record_pack_message(&to.base, out, error);
}

hf_status record_unpack_name(const store_row *row, arena *a, journal_name *out, hf_error *error) {
  ProtobufCMessage *message = NULL;
  HF_TRY(record_unpack_message(&holdfast__v1__journal_name__descriptor, row, a, &message, error));
  const Holdfast__V1__JournalName *from = (Holdfast__V1__JournalName *)message;
  *out = (journal_name){.name = from->name,
                        .bound = from->bound.data,
                        .bound_bytes = from->bound.len,
                        .plain = from->has_plain ? from->plain.data : NULL,
                        .plain_bytes = from->plain.len,
                        .cache_made = from->cache_made != 0};
  return record_decode_uuid(row->owner, &out->session, error);
}

/* -------------------------------------------------------------------- data */

static hf_status pack_data(const journal_data *row, arena *a, buf *out, hf_error *error) {
  Holdfast__V1__JournalData to = HOLDFAST__V1__JOURNAL_DATA__INIT;
  to.number = row->number;
  to.rows = row->rows;
  HF_TRY(schema_to_message(&row->columns, RECORD_DEEPEST_TYPE, a, &to.columns, error));
  return record_pack_message(&to.base, out, error);
}

hf_status record_pack_data(const journal_data *row, buf *out, hf_error *error) {
  arena *a = arena_new();
  hf_status status = a == NULL ? record_no_memory(error) : pack_data(row, a, out, error);
  arena_free(a);
  return status;
}

hf_status record_unpack_data(const store_row *row, arena *a, journal_data *out, hf_error *error) {
  ProtobufCMessage *message = NULL;
  HF_TRY(record_unpack_message(&holdfast__v1__journal_data__descriptor, row, a, &message, error));
  const Holdfast__V1__JournalData *from = (Holdfast__V1__JournalData *)message;
  *out = (journal_data){.number = from->number, .rows = from->rows};
  HF_TRY(record_decode_uuid(row->owner, &out->session, error));
  HF_TRY(record_decode_uuid(row->key, &out->id, error));
  return record_decode_schema(from->columns, a, &out->columns, error);
}
