/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bodies of the journal's rows: structs ⇄ protobuf (journal.proto). What is
 * unpacked lies in the arena. Internal to src/journal.
 * Thread: any.
 */
#ifndef HF_JOURNAL_RECORD_H
#define HF_JOURNAL_RECORD_H

#include "journal/journal.h"

#include "base/arena.h"
#include "base/buf.h"
#include "store.h"
#include "wire/schema_message.h"

#include "holdfast/v1/journal.pb-c.h"

/* Types nest no deeper: those of blocks do not either. */
enum { RECORD_DEEPEST_TYPE = 64 };

/* Errors: OUT_OF_MEMORY, LIMIT (types that nest too deep, a body too large). */
hf_status record_pack_declaration(const declaration *row, buf *out, hf_error *error);
hf_status record_pack_entry(const entry_view *row, buf *out, hf_error *error);
hf_status record_pack_session(const journal_session *row, buf *out, hf_error *error);
hf_status record_pack_name(const journal_name *row, buf *out, hf_error *error);
hf_status record_pack_data(const journal_data *row, buf *out, hf_error *error);

/* Errors: OUT_OF_MEMORY, STATE_DIR (a body that cannot be decoded). */
hf_status record_unpack_declaration(const store_row *row, arena *a, declaration *out, hf_error *error);
hf_status record_unpack_entry(const store_row *row, arena *a, entry_view *out, hf_error *error);
hf_status record_unpack_session(const store_row *row, arena *a, journal_session *out, hf_error *error);
hf_status record_unpack_name(const store_row *row, arena *a, journal_name *out, hf_error *error);
hf_status record_unpack_data(const store_row *row, arena *a, journal_data *out, hf_error *error);

/* ------------------------------------------------------ of record_message.c */

hf_status record_no_memory(hf_error *error);
hf_status record_malformed(const char *what, hf_error *error);
hf_status record_decode_schema(const Holdfast__V1__Schema *from, arena *a, schema *out, hf_error *error);
hf_status record_decode_uuid(const char *text, uuid *out, hf_error *error);
/* Copies a text that has a place of fixed size. */
hf_status record_decode_text(const char *text, char *out, size_t room, hf_error *error);
/* Appends the packed message. */
hf_status record_pack_message(const ProtobufCMessage *message, buf *out, hf_error *error);
/* Unpacks into the arena: nothing is to be freed. */
hf_status record_unpack_message(const ProtobufCMessageDescriptor *message, const store_row *row, arena *a,
                                ProtobufCMessage **out, hf_error *error);

#endif
