/* SPDX-License-Identifier: Apache-2.0 */
/* Columns as a message: what stage plans, task specs and the journal have in common. Thread: any. */
#ifndef HF_WIRE_SCHEMA_MESSAGE_H
#define HF_WIRE_SCHEMA_MESSAGE_H

#include "arrow/type.h"
#include "base/arena.h"

#include "holdfast/v1/stage.pb-c.h"

/* Array of pointers to `count` zeroed structs of `bytes`, all in one block of the arena; NULL for lack of memory. */
void **message_pointers(arena *a, size_t count, size_t bytes);
/* The message lives in the arena and borrows the schema's texts. Errors: LIMIT (types nest deeper than `deepest`),
 * OUT_OF_MEMORY. */
hf_status schema_to_message(const schema *from, unsigned deepest, arena *a, Holdfast__V1__Schema **out,
                            hf_error *error);

#endif
