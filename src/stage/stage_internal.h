/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of stage/ share: limits, and the walk over bytes that were not decoded yet. Thread: any. */
#ifndef HF_STAGE_STAGE_INTERNAL_H
#define HF_STAGE_STAGE_INTERNAL_H

#include "stage/stage.h"

#include <protobuf-c/protobuf-c.h>

/* Both sides must speak the same; raised whenever stage.proto changes. */
#define STAGE_VERSION 3u

enum {
  /* A type that nests deeper is refused: protobuf-c's unpack takes about 1 kB of stack a level. */
  STAGE_MOST_TYPE_LEVELS = 1000,
  /* Messages around a type: plan, input or output, schema, column. */
  STAGE_LEVELS_ABOVE_TYPES = 4,
  /* Submessages, strings and repeated numbers of one plan or spec: an empty one takes 2 bytes on the wire and up to 120 in memory. */
  STAGE_MOST_ELEMENTS = 1 << 20,
  STAGE_MOST_PARTITIONS = 65536,
  /* DuckDB's limits. */
  STAGE_MOST_DECIMAL_DIGITS = 38,
  STAGE_MOST_UNION_MEMBERS = 256
};

/*
 * Walks over encoded bytes without allocating and checks what protobuf-c would take in silently or only after it had
 * allocated: size, count and depth, wire types, unknown, missing and repeated fields, numbers out of range, texts
 * with a NUL byte. `what` names the message for errors. Errors: PROTOCOL, LIMIT.
 */
hf_status stage_wire_check(const ProtobufCMessageDescriptor *message, const char *what, const void *bytes,
                           size_t length, hf_error *error);

#endif
