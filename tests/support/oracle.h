/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DuckDB itself as the oracle of tests: an unlocked instance of its own that
 * runs any statement, plans a query as JSON with the planner's settings, and
 * reads results as typed cells that can be compared. Knows nothing of engine/.
 * Thread: one at a time.
 */
#ifndef HF_TESTS_ORACLE_H
#define HF_TESTS_ORACLE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct oracle oracle;

/* A value as canonical text. Floats inside nested values carry 10 digits; outside they keep their number as well. */
typedef struct oracle_cell {
  char *text; /* NULL: SQL NULL */
  size_t length;
  double number; /* when is_float */
  bool is_float;
} oracle_cell;

typedef struct oracle_rows {
  size_t n_columns, n_rows;
  char **types;       /* as text, nested types with their fields */
  oracle_cell *cells; /* row-major */
} oracle_rows;

typedef enum oracle_verdict {
  ORACLE_SAME,
  ORACLE_OTHER_ORDER,
  ORACLE_OTHER_ROWS,
  ORACLE_OTHER_TYPES
} oracle_verdict;

/* Opens an instance in memory with one thread; extensions come from $HOLDFAST_EXTENSION_DIRECTORY. NULL on failure. */
oracle *oracle_open(void);
void oracle_close(oracle *o);

/* Statements are interrupted after so many seconds of processor time; 0: never. By SIGPROF: one oracle a process. */
void oracle_set_limit(oracle *o, unsigned seconds);
/* Whether the last statement was interrupted by the limit. */
bool oracle_is_late(const oracle *o);

/* Runs a statement; returns NULL, or the error (free). */
char *oracle_run(oracle *o, const char *sql);
/* Runs a query; returns NULL and fills *out (oracle_rows_free), or the error (free). More rows than `most`: none are
 * kept and n_rows is most + 1. */
char *oracle_query(oracle *o, const char *sql, size_t most, oracle_rows *out);
void oracle_rows_free(oracle_rows *rows);

/*
 * Plans a query with the planner's settings (10-planning, 2) and sets them back. Returns the answer of
 * json_serialize_plan (free), or NULL and the error (free).
 */
char *oracle_plan(oracle *o, const char *sql, size_t *length, char **error);

/* Compares types, then rows: in order, then as a multiset. Doubles by 1e-9 relative, FLOAT by 1e-5. */
oracle_verdict oracle_compare(const oracle_rows *a, const oracle_rows *b);
/* Says where they differ, in one line; valid until the next call. */
const char *oracle_difference(const oracle_rows *a, const oracle_rows *b);

#endif
