/* SPDX-License-Identifier: Apache-2.0 */
/* What lowering is made of: growing lists in an arena, and the state of one lowering. Thread: one at a time. */
#ifndef HF_PLAN_LOWER_INTERNAL_H
#define HF_PLAN_LOWER_INTERNAL_H

#include "plan/lower.h"
#include "relation/relation_parts.h"
#include "relation/step.h"

/* Pieces that grow. Text collects in `run` until an input or text of another origin follows. */
typedef struct piece_list {
  sql_piece *pieces; /* arena */
  size_t count, capacity;
  buf run; /* text not yet a piece */
  int64_t run_origin;
} piece_list;

/* The last name that a spot got. */
typedef struct named_spot {
  const char *text; /* of the relation */
  size_t offset;
  const char *name;
} named_spot;

typedef struct lowering {
  const lower_knowledge *knowledge;
  arena *arena;
  hf_error *error;
  const relation **seen; /* relations that were looked at for needs */
  size_t n_seen, seen_capacity;
  const source_request **needed_sources;
  size_t n_needed_sources, sources_capacity;
  const relation **needed_held;
  size_t n_needed_held, held_capacity;
  lower_input *inputs;
  size_t n_inputs, inputs_capacity;
  piece_list chain; /* hf_r0 AS NOT MATERIALIZED (…), hf_r1 AS … */
  made_name *made;  /* one for each use in the chain */
  size_t n_uses, uses_capacity;
  size_t text_bytes, longest_text;
  size_t step_bytes;  /* of what steps wrote into the chain */
  bool counts_only;   /* sources are not known, and not wanted */
  const char *prefix; /* of the names in the chain; in no text of the query */
  bool is_inside;     /* a sub-select is being written */
  unsigned nested;    /* bodies of views that are being written in place */
  bool only_chain;    /* none is */
  bool has_placed;    /* one was */
  named_spot *named;  /* the names that spots of a text got which others are the same as */
  size_t n_named, named_capacity;
} lowering;

/* Makes room for one more element in an arena's list. False: no memory. */
bool lower_grow(arena *a, void **list, size_t count, size_t *capacity, size_t element_bytes);
hf_status lower_out_of_memory(const lowering *l);
/* Appends text of ours; lower_put_text: text that stands at `origin` of the root's; -1: text of ours, or of another relation. */
hf_status lower_put(lowering *l, piece_list *list, const char *text);
hf_status lower_put_text(lowering *l, piece_list *list, const char *text, size_t length, int64_t origin);
hf_status lower_put_input(lowering *l, piece_list *list, uint32_t input);
/* Appends what `from` holds and empties it. */
hf_status lower_put_list(lowering *l, piece_list *to, piece_list *from);
/* Appends what stands at a spot of a text: an input, or the name of a use in the chain. */
hf_status lower_put_spot(lowering *l, piece_list *list, const char *text, const sql_spot *spot);
/* Which virtual columns become columns of the file at a spot (virtual_column), and what is read then. */
unsigned lower_virtual(const lowering *l, const sql_spot *spot, const source_request **request);
/* Appends the input, which has the column filename, with file_index behind its columns. */
hf_status lower_put_indexed(lowering *l, piece_list *list, const source *s, uint32_t number);
/* Appends what leaves virtual columns out of a star. */
hf_status lower_put_star(lowering *l, piece_list *list, const spot_star *star);
/* Takes `body` into the chain; `columns`: "" or a list in parentheses. *name is what stands for it. */
hf_status lower_put_use(lowering *l, piece_list *body, const char *original, const char *columns,
                        const char **name);
/* Whether it is lowered as text, not as an input. */
bool lower_is_text(const relation *r);
/* Puts a relation that is text into the chain. */
hf_status lower_use_relation(lowering *l, const relation *r, const char *original, const char **name);
/* The input that a relation is, unless it is text; and its number: the same input used twice is one. */
hf_status lower_input_of(lowering *l, const relation *r, const held_info *info, const char *name,
                         lower_input *out);
hf_status lower_input_number(lowering *l, const lower_input *input, uint32_t *out);
/* Counts the queries in the chain of a built relation. Errors: LIMIT. */
hf_status lower_count(const relation *r, size_t *queries, hf_error *error);
/* Adds up what steps write. Errors: LIMIT. */
hf_status lower_count_bytes(lowering *l, const piece_list *body);
/* Appends the query that a built relation is; what it stands on goes into the chain. */
hf_status lower_built(lowering *l, piece_list *out, const relation *r);
/* Finds what must be known first. */
hf_status lower_needs(lowering *l, const relation *root);
/* Puts back what the user wrote where a text of DuckDB shows what lowering made of it. Returns `text` itself, or a text
 * in the arena; NULL for lack of memory. */
const char *lower_clean_text(const lowered *l, const char *text, arena *a);
/* Follows cache nodes that are computed in place to what they hold. */
const relation *lower_skip_inline(const lowering *l, const relation *r, held_info *info);

#endif
