/* SPDX-License-Identifier: Apache-2.0 */
/* What encoding and decoding relations share. Thread: any. */
#ifndef HF_WIRE_INTERNAL_H
#define HF_WIRE_INTERNAL_H

#include "relation/relation_parts.h"
#include "relation/step.h"
#include "wire/wire.h"

#include "holdfast/v1/relation.pb-c.h"
#include "spark/connect/relations.pb-c.h"

#define WIRE_CACHE_NODE_URL "type.googleapis.com/holdfast.v1.CacheNode"
#define WIRE_DESCRIBED_URL "type.googleapis.com/holdfast.v1.Described"

enum {
  WIRE_LARGEST_BYTES = 64 << 20,
  WIRE_DEEPEST =
      5000, /* messages in messages; a view costs four, a step two. protobuf-c's unpack takes about 1 KiB each */
  WIRE_MOST_NODES = 10000 /* relations: a view used twice is written twice */
};

/* Numbers of the protocol. */
enum {
  WIRE_GROUP_BY = 1,
  WIRE_ASCENDING = 1,
  WIRE_DESCENDING = 2,
  WIRE_NULLS_FIRST = 1,
  WIRE_NULLS_LAST = 2
};

typedef struct wire_packer {
  arena *arena;
  size_t n_nodes;
  hf_error *error;
} wire_packer;

hf_status wire_pack_no_memory(const wire_packer *p);
/* Text with its spots, from `begin` to `end`. */
typedef struct wire_part {
  const char *text;
  size_t begin, end;
  const sql_spot *spots;
  size_t n_spots;
} wire_part;
/* The text as it is sent: names of files do not depend on the working directory. */
hf_status wire_text(wire_packer *p, const wire_part *part, char **out);

/* Encodes what a step stands on, with its columns unless it knows them by itself. */
hf_status wire_encode_below(wire_packer *p, const relation *r, const step_side *side,
                            Spark__Connect__Relation **out);
/* Fills the relation with a step. */
hf_status wire_encode_step(wire_packer *p, const relation *r, Spark__Connect__Relation *to);

typedef struct wire_unpacker {
  engine *planner;
  const relation_names *names;
  arena *arena;
  unsigned level; /* relations around the one that is decoded */
  size_t bytes;   /* unpacked so far: a cache node's input is unpacked again */
  hf_error *error;
} wire_unpacker;

hf_status wire_unpack_no_memory(const wire_unpacker *u);
/* Sets PROTOCOL. */
hf_status wire_malformed(const wire_unpacker *u, const char *what);
hf_status wire_decode(wire_unpacker *u, const Spark__Connect__Relation *from, relation **out);
/* Decodes a step and builds it. */
hf_status wire_decode_step(wire_unpacker *u, const Spark__Connect__Relation *from, relation **out);

/*
 * Walks the bytes by descriptor before protobuf-c unpacks them. Errors: LIMIT (size, depth), PROTOCOL (cut off, or a
 * field that our subset does not have).
 */
hf_status wire_check(const ProtobufCMessageDescriptor *message, const void *bytes, size_t length,
                     hf_error *error);

#endif
