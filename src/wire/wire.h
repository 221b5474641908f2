/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relations as bytes: Spark Connect messages, to be sent or kept.
 * Thread: any; bytes that are not trusted are decoded on a planning stack.
 */
#ifndef HF_WIRE_WIRE_H
#define HF_WIRE_WIRE_H

#include "relation/relation.h"

/* Encodes as a Spark Connect Relation (proto/spark/connect/relations.proto); a cache node as Relation.extension. */
hf_status relation_pack(const relation *r, buf *out, hf_error *error);
/* Decodes; SQL text is parsed again on the planner. Errors: PROTOCOL, LIMIT (size, depth) and those of relation_from_sql. */
hf_status relation_unpack(const void *bytes, size_t length, engine *planner, const relation_names *names,
                          relation **out, hf_error *error);

#endif
