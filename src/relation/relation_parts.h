/* SPDX-License-Identifier: Apache-2.0 */
/* The relation struct, for those who make, lower, encode and compare relations. Thread: immutable once made; the count is atomic. */
#ifndef HF_RELATION_PARTS_H
#define HF_RELATION_PARTS_H

#include "relation/relation.h"
#include "sql/token.h"

#include <stdatomic.h>

/* Views on views, caches on caches: deeper is refused. Walks of relations recurse. */
enum { RELATION_DEEPEST = 1000 };
/* Steps on top of each other: what can be planned, and sent as nested messages. */
enum { RELATION_MOST_STEPS = 2400 };
/* Queries in the chain of one lowered text: DuckDB nests as many, and takes quadratic time. */
enum { RELATION_MOST_QUERIES = 980 };

struct relation {
  atomic_uint references;
  arena *arena; /* everything below */
  relation_view view;
  token_list tokens;     /* SQL: of view.text */
  const char *clock;     /* SQL: a function in the text that reads the clock, such as now; NULL: none */
  const char *canonical; /* what its fingerprint is made of; those below by their fingerprints */
  char fingerprint[33];
  unsigned depth; /* 1 + that of the deepest relation below; of a step: that of its input */
  unsigned steps; /* built on top of each other, above what is not built */
  size_t queries; /* at most so many stand in the chain of the lowered text, nothing being held */
  _Atomic(const schema *) remembered; /* columns that were described; of what is not built */
  arena *remembered_memory;           /* set by who set `remembered` */
};

/* Makes a relation of the kind, with an arena of its own. Errors: OUT_OF_MEMORY. */
hf_status relation_new(relation_kind kind, relation **out, hf_error *error);
/*
 * Takes note of relations below and computes the fingerprint; the last step of making. Retains what `view` names.
 * Errors: LIMIT, OUT_OF_MEMORY; then the caller drops the relation with relation_drop.
 */
hf_status relation_finish(relation *r, hf_error *error);
/* Frees a relation that is not finished. */
void relation_drop(relation *r);
/* Copies a request into the arena; NULL for lack of memory. */
const source_request *source_request_copy(const source_request *from, arena *a);
bool source_request_equal(const source_request *a, const source_request *b);

#endif
