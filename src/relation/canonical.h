/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The canonical form of a parsed tree: equal texts for what means the same.
 * Positions, blanks and the spelling of literals are not in it; literals are
 * typed; a name is what it is bound to.
 * Thread: any.
 */
#ifndef HF_RELATION_CANONICAL_H
#define HF_RELATION_CANONICAL_H

#include "relation/node.h"
#include "relation/relation_parts.h"
#include "relation/step.h"

/* What names of the tree stand for. */
typedef struct canonical_form {
  const sql_spot *spots;
  size_t n_spots;
  const step_ref *refs; /* columns by number; of length 0: not meant */
  size_t n_refs;
  bool without_alias;       /* the alias of the tree's root does not count */
  struct json_object *root; /* where a table's own name may be used as an alias; set by canonical_append */
} canonical_form;

/* Appends the form of the tree; `out->failed` tells of memory. */
void canonical_append(canonical_form *form, struct json_object *tree, buf *out);
/* Appends a request: format, paths, options. */
void canonical_request(const source_request *request, buf *out);
/* Appends what a built relation is: its step, and the fingerprints of what it stands on. */
void canonical_step(const relation *r, buf *out);

#endif
