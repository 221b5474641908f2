/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of engine/ share: the instance, the run that it serves, and the
 * seams between subjects. No other folder includes this.
 *
 * Invariants. E1: at most one statement of ours runs on an instance at a time.
 * E2: `run` is set only while a task or a rendering runs, and what DuckDB's
 * threads reach through it outlives the connection that runs it. E3: an error of
 * a callback is kept in the run; DuckDB is told only that there was one.
 */
#ifndef HF_ENGINE_INTERNAL_H
#define HF_ENGINE_INTERNAL_H

#include "engine/engine.h"

#include "base/mem.h"

#include <duckdb.h>
#include <pthread.h>
#include <stdatomic.h>

/* Rows in DuckDB's vectors. Source: STANDARD_VECTOR_SIZE of the pinned library; checked when an instance opens. */
#define ENGINE_VECTOR_ROWS 2048

typedef struct engine_run engine_run;

/* Which rules of DuckDB's optimiser are in force. */
typedef enum engine_rules {
  RULES_ALL,
  RULES_PLANNING, /* those whose results can be said in SQL */
  RULES_UNFOLDED, /* of them those that make no constants */
  RULES_UNPUSHED  /* all but those that push conditions into scans */
} engine_rules;

struct engine {
  engine_kind kind;
  duckdb_database database;
  duckdb_connection main;            /* registers functions, converts Arrow, runs small statements */
  duckdb_connection describing;      /* with the optimiser off; NULL until first needed */
  duckdb_connection planning;        /* copies each plan (verify_serializer); NULL until first needed */
  duckdb_connection spare;           /* slots: that of the next task; NULL: one is needed */
  duckdb_prepared_statement parsing; /* NULL until first needed */
  duckdb_arrow_options arrow;
  char *copy_target;  /* what a task's COPY names, which DuckDB makes a directory; NULL: runs no tasks */
  engine_rules rules; /* of the optimiser that are in force */
  const engine_scan *scans;
  size_t n_scans;
  engine_run *run;
  atomic_bool interrupted; /* sticky until the statement ends */
  atomic_uint_fast64_t block_rows,
      block_rows_total; /* of the running statement: given by hf_blocks; there are */
  pthread_mutex_t lock;
  duckdb_connection running; /* lock */
};

/* --------------------------------------------------------------------- plan.c */

/* Switches the rules of the instance; nothing is done when these are in force. */
hf_status engine_use_rules(engine *e, engine_rules wanted, hf_error *error);

/* ---------------------------------------------------------------- statement.c */

/* Makes `on` the connection that engine_interrupt stops. Errors: CANCELLED, when it came before. */
hf_status statement_begin(engine *e, duckdb_connection on, hf_error *error);
/* Ends what statement_begin began; an interrupt is over with it. Returns whether there was one. */
bool statement_finish(engine *e);
/* Another connection of the instance. Errors: OUT_OF_MEMORY. */
hf_status statement_connect(engine *e, duckdb_connection *out, hf_error *error);
/* Runs a text on a connection as it is, outside of begin and end. Errors: what DuckDB says. */
hf_status statement_run(duckdb_connection on, const char *sql, hf_error *error);

/* ------------------------------------------------------------------- failure.c */

/*
 * Sets *error from DuckDB's text: JSON (errors_as_json), perhaps behind a prefix, or plain. `before` is the length of
 * what was put in front of the caller's SQL: positions count behind it. Returns the code.
 */
hf_status failure_set(hf_error *error, const char *text, size_t before);
/* The same for DuckDB's error data, which it destroys. HF_OK when there is no error in it. */
hf_status failure_take(hf_error *error, duckdb_error_data *data);
/* Sets *error from the object that json_serialize_* put in place of an answer. */
hf_status failure_set_json(hf_error *error, const char *json);

/* --------------------------------------------------------------------- types.c */

/* Errors: UNSUPPORTED names the type. */
hf_status type_from_duckdb(duckdb_logical_type from, arena *a, const data_type **out, hf_error *error);
/* `unfolds` makes VARCHAR of ENUM at any depth. *out is owned by the caller. */
hf_status type_to_duckdb(const data_type *from, bool unfolds, duckdb_logical_type *out, hf_error *error);

/* --------------------------------------------------------------------- exact.c */

/* The format of a field whose INTERVALs have the 16 bytes of DuckDB's, in the face that DuckDB is told. */
#define EXACT_INTERVAL_FORMAT "tin"

/* Tells whether values of the type need what follows: there is an INTERVAL or a UNION in it. */
bool exact_is_needed(const data_type *type);
/*
 * Puts right what DuckDB's conversion of all rows between a vector and an array loses. The vector is flat at every
 * depth; the array, when it is the target, is as DuckDB made it; the field is as DuckDB was told.
 */
void exact_to_arrow(const data_type *type, duckdb_vector from, const struct ArrowArray *to, size_t count);
void exact_from_arrow(const data_type *type, const struct ArrowSchema *field, const struct ArrowArray *from,
                      duckdb_vector to);

/* ------------------------------------------------- scan.c, blocks.c, sink.c, run.c */

hf_status scan_register(engine *e, hf_error *error);
hf_status blocks_register(engine *e, hf_error *error);
hf_status sink_register(engine *e, hf_error *error);

typedef struct run_input {
  const engine_input *from;
  bool is_exact;              /* no column needs exact_from_arrow */
  struct ArrowSchema *fields; /* one a column, in DuckDB's face; released by nobody */
} run_input;

/* The names of an ENUM column as an array. */
typedef struct enum_names {
  const void *buffers[3];
  struct ArrowArray array; /* released by nobody */
} enum_names;

/* How values of a column get from a vector to Arrow and back without DuckDB. */
typedef enum direct_way {
  DIRECT_NOT,
  DIRECT_SAME,    /* both have the same bytes */
  DIRECT_WIDENED, /* 2 bytes in a vector are 4 in Arrow */
  DIRECT_TEXT     /* 32-bit offsets */
} direct_way;

typedef struct direct_column {
  direct_way way;
  size_t bytes; /* of a value, or an offset, in Arrow */
} direct_column;

struct engine_run {
  engine *engine;
  arena *memory;
  const engine_task *task; /* NULL: a rendering */
  run_input *inputs;
  size_t n_inputs;
  pthread_mutex_t lock;
  pthread_cond_t left;
  size_t users;   /* lock: scans and sink states that DuckDB has not let go yet */
  hf_error error; /* lock: the first of a callback */
  /* of the sink, filled while binding */
  struct ArrowSchema sink_schema;
  size_t n_sink_columns;           /* without the partition column */
  const data_type **sink_exact;    /* the type of a column that needs exact_to_arrow, else NULL */
  duckdb_logical_type *sink_types; /* of those */
  size_t n_sink_enums;             /* columns that are an ENUM */
  enum_names **sink_enums;         /* one a column; NULL: it is none */
  direct_column *sink_direct;      /* one a column; NULL: not all of them are */
};

/* Prepares the inputs and sets e->run. Takes nothing; run_close in any case. */
hf_status run_open(engine_run *run, engine *e, const engine_input *inputs, size_t n_inputs, hf_error *error);
/* Waits until DuckDB has let go of everything. */
void run_close(engine_run *run);
/* Around the life of what DuckDB holds and what reaches the run. */
void run_enter(engine_run *run);
void run_leave(engine_run *run);
/* Keeps a callback's error, when it is the first; moves from *error. */
void run_fail(engine_run *run, hf_error *error);
/* The release of a field whose memory is another's: DuckDB takes a field without release for one that is gone. */
void run_release_nothing(struct ArrowSchema *field);
/*
 * The end of a statement that came to `status` with *found, which it moves or resets: the kept error, when there is
 * one, since DuckDB only passed it on.
 */
hf_status run_conclude(engine_run *run, hf_status status, hf_error *found, hf_error *error);

/* -------------------------------------------------------------------- enums.c */

/* Finds the ENUM columns among the sink's, whose schema is known. `types` are n_sink_columns. */
hf_status enums_bind(engine_run *run, const data_type *const *types, hf_error *error);

/* What a sink state makes arrays with, of chunks like the given one, when some columns are an ENUM. */
typedef struct enum_splitter enum_splitter;
hf_status enum_splitter_new(const engine_run *run, duckdb_data_chunk chunk, enum_splitter **out,
                            hf_error *error);
/* Accepts NULL. */
void enum_splitter_free(enum_splitter *s);
/* Makes one array of a chunk's rows, as DuckDB would: borrowed until the splitter's next call. */
hf_status enum_splitter_convert(enum_splitter *s, duckdb_data_chunk chunk, struct ArrowArray *out,
                                hf_error *error);
/* Lets go of the last chunk's. */
void enum_splitter_reset(enum_splitter *s);

/* ------------------------------------------------------------------- direct.c */

direct_column direct_column_of(const data_type *type, const struct ArrowSchema *field);
/* Copies all rows into a vector of the output; texts go on pointing into the array's buffers. Not DIRECT_NOT. */
void direct_from_arrow(direct_column how, const struct ArrowArray *array, duckdb_vector out);
/* Fills run->sink_direct from the sink's schema and `types`, which are n_sink_columns. */
hf_status direct_bind(engine_run *run, const data_type *const *types, hf_error *error);

/* What a sink state makes arrays with when all columns are direct. */
typedef struct direct_rows direct_rows;
hf_status direct_rows_new(const engine_run *run, direct_rows **out, hf_error *error);
/* Accepts NULL. */
void direct_rows_free(direct_rows *d);
/* Makes an array of a flat chunk's rows without the partition column: borrowed until the chunk or the next call. Errors:
 * LIMIT (texts of 2 GiB in one chunk), OUT_OF_MEMORY. */
hf_status direct_rows_convert(direct_rows *d, duckdb_data_chunk chunk, struct ArrowArray *out,
                              hf_error *error);

/* ------------------------------------------------------------------ convert.c */

/* How one reader of hf_blocks makes vectors of arrays. Thread: one at a time. */
typedef struct block_conversion block_conversion;

/* `columns` picks n_columns of the input's; borrowed. */
hf_status block_conversion_new(engine *e, const run_input *input, const size_t *columns, size_t n_columns,
                               block_conversion **out, hf_error *error);
/* Accepts NULL. */
void block_conversion_free(block_conversion *c);
/* Puts an array's rows into the output. The array stays the caller's. */
hf_status block_convert(block_conversion *c, const struct ArrowArray *rows, duckdb_data_chunk out,
                        hf_error *error);

/* -------------------------------------------------------------------- coded.c */

/* The values of a column that comes as codes, in DuckDB's face; zeroed: none yet. */
typedef struct coded_values {
  const data_type *type;
  const struct ArrowSchema *field; /* in DuckDB's face */
  const source_dictionary *from;
  duckdb_vector vector; /* of from->values */
} coded_values;

void coded_values_reset(coded_values *v);
/* Puts rows of codes into a vector of the output: one of bytes as a dictionary of the values, others as the values that the
 * codes stand for. Errors: BLOCK_CORRUPT (a code of no value). */
hf_status coded_convert(coded_values *v, engine *e, const struct ArrowArray *codes, duckdb_vector out,
                        hf_error *error);

/* --------------------------------------------------------------------- task.c */

/* A connection that shows progress and measures what it runs. */
hf_status task_connect(engine *e, duckdb_connection *out, hf_error *error);

#endif
