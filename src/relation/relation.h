/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relations: what a DataFrame is before it is planned. Immutable and reference
 * counted; names in SQL text are bound to relations when the text is parsed.
 * Thread: any (counts are atomic).
 */
#ifndef HF_RELATION_RELATION_H
#define HF_RELATION_RELATION_H

#include "base/id.h"
#include "engine/engine.h"
#include "source/source.h"

typedef enum relation_kind {
  RELATION_SQL,   /* SQL text with its names bound */
  RELATION_READ,  /* files */
  RELATION_LOCAL, /* client data that the session wrote as blocks */
  RELATION_CACHE, /* a cache node over an input */
  RELATION_BUILT  /* a step over an input, or two (build.h) */
} relation_kind;

typedef struct relation relation;
struct relation_step;

/* Columns that DuckDB's readers have beside those of the files: they can be named, and are not in *. */
typedef enum virtual_column {
  VIRTUAL_FILENAME = 1,
  VIRTUAL_FILE_ROW_NUMBER = 2,
  VIRTUAL_FILE_INDEX = 4
} virtual_column;

/* What a query says of a file's virtual columns; whether the file has others of their names shows when it is read. */
typedef struct spot_virtual {
  unsigned wanted;    /* of virtual_column: those that the query names */
  const char *called; /* the table, in the query */
  bool may_be_row;    /* so is a column: the whole row, unless the file has a column of that name */
  const source_request
      *with[4]; /* what is read when filename (1), file_row_number (2) or both become columns */
} spot_virtual;

/* A star over files: EXCLUDE is written behind it for virtual columns that became columns. */
typedef struct spot_star {
  bool is_bare;  /* FROM without SELECT: the star is written, too */
  bool is_plain; /* t.*: names in EXCLUDE stand alone */
  bool has_list; /* there is an EXCLUDE: the place is behind its parenthesis */
  size_t n_files;
  const struct sql_spot *files;
} spot_star;

/* A place in SQL text that lowering replaces. */
typedef struct sql_spot {
  size_t offset, length;        /* bytes of the text that are replaced */
  const char *name;             /* what stands there: a name, a path, or a reader's name */
  const char *alias;            /* to add behind the replacement; NULL: one stands there already */
  bool is_query;                /* a whole query stands here (TABLE v, DESCRIBE v): write FROM in front */
  size_t same_as;               /* offset of the spot whose replacement stands here too; 0: its own */
  const relation *bound;        /* a view, cached table or DataFrame; or NULL and: */
  const source_request *source; /* a file or reader call; or NULL and: */
  const spot_star *star;        /* a star; the spot has no length and no name */
  const spot_virtual *columns;  /* of a file: virtual columns that are named; NULL: none */
} sql_spot;

/* Borrowed looks into a relation. */
typedef struct relation_view {
  relation_kind kind;
  /* SQL */
  const char *text;
  const sql_spot *spots; /* sorted by offset, not overlapping */
  size_t n_spots;
  bool is_rewritten; /* it is not what the user wrote */
  bool top_ordered;  /* an ORDER BY at its top, or what it merely passes on is ordered */
  /* READ */
  const source_request *source;
  /* LOCAL */
  uuid local_id;
  const schema *local_columns;
  uint64_t local_rows;
  const char *local_dir; /* attempt directory with its blocks */
  /* CACHE */
  uuid cache_id, session;
  const relation *input;
  const char *level;
  /* BUILT: `input` and */
  const struct relation_step *step; /* build_internal.h */
  const relation *other;            /* of a join or set operation; or NULL */
} relation_view;

relation_view relation_look(const relation *r);
relation *relation_retain(const relation *r);
void relation_release(const relation *r);

/* Calls `each` for the relations that this one is made of: its inputs, and what its texts name. Some may come twice. */
void relation_each_part(const relation *r, void (*each)(void *context, const relation *part), void *context);

/* Looks up a name of SQL text: returns a borrowed relation, or NULL when the session has none of that name. */
typedef const relation *(*relation_lookup_fn)(void *context, const char *name);

/*
 * Parses a query on the planner's engine, finds its names (CTE names win), checks every table function against the
 * allow-list and binds names by `lookup`. Errors: SYNTAX with position; TABLE_NOT_FOUND with the nearest name
 * (`suggest` lists known names); FUNCTION_REFUSED; STATEMENT_REFUSED; LIMIT (nested too deep).
 */
typedef struct relation_names {
  relation_lookup_fn lookup;
  const char *(*name_at)(void *context, size_t i); /* known names for suggestions, NULL behind the last */
  void *context;
  /* Of relation_unpack: client data, borrowed; NULL: none. And the columns of what a step is built on, when they did not
   * come with it; NULL: they must. */
  const relation *(*local)(void *context, const uuid *id);
  hf_status (*describe)(void *context, const relation *r, arena *a, schema *out, hf_error *error);
  bool is_rewritten; /* the text is not what the user wrote: errors have no position */
} relation_names;
/* Thread: one with a stack of THREAD_PLANNING_STACK_BYTES when the text is not trusted. */
hf_status relation_from_sql(engine *planner, const char *sql, const relation_names *names, relation **out,
                            hf_error *error);
hf_status relation_from_read(const source_request *request, relation **out, hf_error *error);
hf_status relation_from_local(const uuid *id, const char *dir, const schema *columns, uint64_t rows,
                              relation **out, hf_error *error);
/* A cache node; retains `input`. Level: a storage level's name. */
hf_status relation_from_cache(const uuid *cache_id, const uuid *session, const relation *input,
                              const char *level, relation **out, hf_error *error);

/*
 * XXH3-128 of the canonical form, as 32 hex digits. The form of SQL text is its parsed tree without positions: blanks,
 * comments and how a literal is spelled do not count; its type, the order and the names of result columns do; a name is
 * what it was bound to, a file its absolute path. Settings and the engine's version are the caller's to add.
 */
void relation_fingerprint(const relation *r, char out[33]);
/* Whether the canonical forms are equal, all the way down: confirms that equal fingerprints mean one plan. */
bool relation_equal(const relation *a, const relation *b);
/* Appends the canonical form of the relation and, once each, of all below it, to be kept and compared by bytes. */
void relation_canonical(const relation *r, buf *out);
/* Tells whether it is DESCRIBE of a query: its answer is the columns of that query, which needs no rows. */
bool relation_only_describes(const relation *r);

#endif
