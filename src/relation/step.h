/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a built relation consists of, for those who make, lower, encode and
 * compare it. All of it lies in the relation's arena and never changes.
 * Thread: any; making belongs to one.
 */
#ifndef HF_RELATION_STEP_H
#define HF_RELATION_STEP_H

#include "relation/build.h"
#include "relation/relation.h"

/* Length of "SELECT ", with which the text of an expression begins. */
enum { STEP_TEXT_HEAD = 7 };

/* A column reference in the text of an expression. */
typedef struct step_ref {
  size_t offset, length; /* of the text: the name, with the alias in front of it */
  size_t column;         /* of the input; of the other: behind those */
  size_t parts;          /* of the name that the tree has */
} step_ref;

/* What an expression is; several may be set. */
enum {
  STEP_COLUMN = 1 << 0,   /* refs[0] and nothing else; text is NULL when a star made it */
  STEP_CONSTANT = 1 << 1, /* a literal */
  STEP_STAR = 1 << 2,     /* makes several columns: * EXCLUDE (…), COLUMNS(…), unnest of a struct */
  STEP_OPAQUE = 1 << 3,   /* holds names that are not among refs: its text fits no other columns */
  STEP_VOLATILE = 1 << 4, /* another value each time: random() */
  STEP_FIXED = 1 << 5,    /* may not stand for its column in another expression: a window, COLLATE, unnest */
  STEP_ROWS = 1 << 6,     /* makes other rows: unnest */
  STEP_WINDOW = 1 << 7,   /* looks at all rows */
  STEP_CHEAP = 1 << 8,    /* operators over columns and constants: may be computed twice */
  STEP_ALL_COLUMNS = 1 << 9, /* must be bound with every column in sight */
  STEP_TYPED = 1 << 10       /* has the type of its column wherever it stands; a literal has not */
};

/* One expression of a step. The text is parsed as "SELECT <text>"; positions count from its beginning. */
typedef struct step_expression {
  const char *text;
  size_t begin, end; /* the expression, without alias and order */
  const sql_spot *spots;
  size_t n_spots;
  const step_ref *refs; /* sorted by offset */
  size_t n_refs;
  const char *name;      /* of its column; NULL while DuckDB has not named it, and of stars */
  const data_type *type; /* NULL while not known */
  const char
      *star_of; /* a plain star: the label in front of it, or ""; NULL: no star, or one with EXCLUDE … */
  const char *order;     /* of a sort key: what stands behind it, such as " DESC"; or "" */
  const char *canonical; /* its tree without positions, columns by number, names as what they are bound to */
  const char *clock;     /* a function in it that reads the clock; NULL: none */
  const schema *many;    /* STAR: the columns that it makes; NULL while not known */
  size_t weight;         /* tokens */
  unsigned shape;        /* STEP_* */
} step_expression;

/* Columns that expressions see. */
typedef struct step_side {
  const schema *columns;     /* as the user names them */
  const char *const *inside; /* what they are called in lowered text; NULL: as the user does */
  const char *alias;         /* of all of them, or NULL */
  const char *const *labels; /* the alias of each, behind a join; NULL: `alias` */
} step_side;

struct relation_step {
  build_kind kind;
  step_side in, other; /* what it was built over */
  step_side out;       /* columns NULL while they must be described */
  const step_expression *expressions;
  size_t n_expressions;
  const step_expression *groups;
  size_t n_groups;
  const size_t
      *kept; /* DROP, RENAME: columns of the input; JOIN: of the input, then of the other, that it gives */
  size_t n_kept;
  const size_t
      *using_columns; /* JOIN: n_using of the input, then as many of the other; they come first in `kept` */
  size_t n_using;
  const size_t *places; /* WITH_COLUMNS: the expression that each column is; SIZE_MAX: what it was */
  size_t n_places;
  join_type join;
  set_type set;
  bool all, by_name, has_limit;
  bool is_deferred; /* its text names relations: it can be bound only when those are lowered */
  uint64_t limit, offset;
  const char *name; /* ALIAS */
};
typedef struct relation_step relation_step;

const char *step_inside_name(const step_side *side, size_t number);
const char *step_label(const step_side *side, size_t number);
/* Index of the column of this name, by letter case set aside; SIZE_MAX: none; *several: not the only one. */
size_t step_find_column(const schema *columns, const char *name, bool *several);

/* What the inputs are called in lowered text: NULL where they need no name. Set for both inputs or, of one, [0]. */
void step_side_names(const relation_step *step, const char *out[2]);
/* Appends a column of the inputs as lowered text calls it; with its side when there are two. */
void step_put_column(const relation_step *step, const char *const sides[2], size_t number, buf *out);

/* Appends the value of the key of a join by columns: the left's, the right's, or of a full join the one that is there. */
void step_put_using(const relation_step *step, const char *const sides[2], size_t key, buf *out);
void step_put_using_condition(const relation_step *step, const char *const sides[2], buf *out);
/* " LEFT JOIN ", " UNION ALL ": with blanks around. */
const char *step_join_word(join_type join);
const char *step_set_words(const relation_step *step);

#endif
