/* SPDX-License-Identifier: Apache-2.0 */
/* What encoding and decoding relations share. Thread: any. */
#ifndef HF_PLAN_WIRE_INTERNAL_H
#define HF_PLAN_WIRE_INTERNAL_H

#include "plan/relation_internal.h"

#include "holdfast/v1/relation.pb-c.h"
#include "spark/connect/relations.pb-c.h"

#define WIRE_CACHE_NODE_URL "type.googleapis.com/holdfast.v1.CacheNode"

enum {
  WIRE_LARGEST_BYTES = 64 << 20,
  WIRE_DEEPEST =
      4000, /* messages in messages; a view costs four. protobuf-c's unpack takes about 1 KiB each */
  WIRE_MOST_NODES = 10000 /* relations: a view used twice is written twice */
};

/*
 * Walks the bytes by descriptor before protobuf-c unpacks them. Errors: LIMIT (size, depth), PROTOCOL (cut off, or a
 * field that our subset does not have).
 */
hf_status wire_check(const ProtobufCMessageDescriptor *message, const void *bytes, size_t length,
                     hf_error *error);

#endif
