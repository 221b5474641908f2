/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only way to DuckDB. An engine is one DuckDB instance, opened, configured
 * and locked: a slot (runs tasks), a planner (binds and explains, reads nothing)
 * or a discoverer (reads heads of files for their schema). Data crosses as Arrow
 * C arrays through callbacks; no other folder sees a DuckDB type.
 */
#ifndef HF_ENGINE_ENGINE_H
#define HF_ENGINE_ENGINE_H

#include "arrow/type.h"
#include "base/arena.h"
#include "base/buf.h"

typedef enum engine_kind { ENGINE_SLOT, ENGINE_PLANNER, ENGINE_DISCOVERER } engine_kind;

typedef struct engine_setting {
  const char *name; /* of DuckDB: TimeZone, default_null_order … */
  const char *value;
} engine_setting;

typedef struct engine_options {
  engine_kind kind;
  unsigned threads;      /* 0: 1 */
  uint64_t memory_bytes; /* 0: 1 GiB */
  const char *spill_dir; /* slots: where DuckDB may spill; NULL: nowhere */
  const char *slot_dir;  /* slots: the empty directory that the sink's COPY names; made by the caller */
  const char *const *allowed_dirs; /* absolute paths of files that statements may read */
  size_t n_allowed_dirs;
  const engine_setting *settings; /* everything that changes a result */
  size_t n_settings;
  const char *extension_dir; /* NULL: none */
  const char *const *load;   /* extensions of that directory to load before the lock, which is against it */
  size_t n_load;
} engine_options;

typedef struct engine engine;

/*
 * Opens an instance in the order that locks it (settings, allowed directories, no external access, locked
 * configuration). Errors: VERSION, OUT_OF_MEMORY, SETTING_VALUE, UNSUPPORTED (an extension that is not there), INTERNAL.
 * Cost: about 8 ms on a quiet machine.
 * Thread: an engine is used by one thread at a time, except engine_interrupt, engine_interrupt_reset and
 * engine_progress. DuckDB's own threads inherit the signal mask of the thread that opens. After an error INTERNAL of
 * any function DuckDB may have shut the instance: close it.
 */
hf_status engine_open(const engine_options *options, engine **out, hf_error *error);
/* Accepts NULL. */
void engine_close(engine *e);
/* Stops the running statement with CANCELLED; when none runs, the next. Thread: any. */
void engine_interrupt(engine *e);
/* Forgets an interrupt that came when nothing ran: to be called before a statement can be meant. Thread: any. */
void engine_interrupt_reset(engine *e);
/* The library's version, such as "v1.5.5"; static. */
const char *engine_library_version(void);
/* Where DuckDB's extensions lie: as $HOLDFAST_EXTENSION_DIRECTORY tells, else near libduckdb, as installed or as built. NULL:
 * nowhere, or no memory in `a`, where the text is. */
const char *engine_extension_dir(arena *a);

/* ---------------------------------------------------------------- planning */

/* Returns json_serialize_sql(sql) as text in the arena. Errors: SYNTAX with position; LIMIT (nested too deep);
 * STATEMENT_REFUSED of anything but queries. */
hf_status engine_parse(engine *e, const char *sql, arena *a, const char **json, hf_error *error);

/* What hf_scan(<i>) stands for while planning: columns and rows. */
typedef struct engine_scan {
  const char *id; /* the text between the parentheses is "'<id>'" */
  const schema *columns;
  uint64_t rows;
  bool rows_exact;
  bool by_name; /* its columns have the names of `columns`, which must differ; else they are c0 … cn */
} engine_scan;

/* Says what hf_scan means for the statements from now on; the array is borrowed until the next call. */
void engine_set_scans(engine *e, const engine_scan *scans, size_t n_scans);

/* Binds a query and returns its columns; nothing of it is computed. Errors: user errors of binding, with position;
 * STATEMENT_REFUSED when it is not a query; BIND when it has parameters; UNSUPPORTED types, by name. */
hf_status engine_describe(engine *e, const char *sql, arena *a, schema *out, hf_error *error);
/* The optimised plan as JSON; *json NULL when DuckDB cannot serialise it (`why` says so). */
hf_status engine_plan_json(engine *e, const char *sql, arena *a, const char **json, const char **why,
                           hf_error *error);
/* DuckDB's own EXPLAIN of the query, as text. */
hf_status engine_explain(engine *e, const char *sql, arena *a, const char **text, hf_error *error);

/* A small result as text, row by row. */
typedef struct text_table {
  size_t n_columns, n_rows;
  const char *const *names;
  const char *const *cells; /* row-major; NULL is SQL NULL */
} text_table;

/* Runs a query with a small result (at most 100,000 cells, else LIMIT). For discovery. Columns of the same name are
 * numbered: a, a_1. An interrupt may take effect only at its end. */
hf_status engine_query_text(engine *e, const char *sql, arena *a, text_table *out, hf_error *error);

/* Runs statements whose results nobody wants: CREATE VIEW, CALL, COPY. What the lock forbids stays forbidden. Errors: those
 * of the statements. For tools: no SQL of a session comes here. */
hf_status engine_execute(engine *e, const char *sql, hf_error *error);

/* -------------------------------------------------------------------- tasks */

/*
 * Where rows go. `open` is called once for each of DuckDB's pipelines in parallel that gets output, once in all when
 * the task is ordered, and at least once in a task that succeeds, also without rows. Then `append` and `close` by one
 * thread at a time, which need not always be the same. Arrays are of the engine's face; `append` borrows them.
 * `partitions` holds the partition number of each row, all below the task's number of partitions, or NULL when the
 * task has one partition. An error ends the task with it.
 *
 * In an array an INTERVAL is 16 bytes as DuckDB has them (months, days, µs), whatever its format says. In a UNION
 * whose value is there but NULL, the first member with a validity but number 0 is marked as there when the tag is 0:
 * blocks must carry the validity of members that a tag does not name.
 */
typedef struct sink_ops {
  hf_status (*open)(void *sink, const struct ArrowSchema *engine_schema, void **state, hf_error *error);
  hf_status (*append)(void *state, const struct ArrowArray *rows, const uint32_t *partitions,
                      hf_error *error);
  hf_status (*close)(void *state, hf_error *error); /* flushes; not after a failure of this state */
  void (*discard)(void *state);                     /* frees the state; called always, last */
} sink_ops;

/*
 * The dictionary of a column that comes as codes: an array of codes has as `dictionary` the `values` of one of these, and as
 * buffers its validity and codes of code_bytes, each below values.length; the last of the values is a NULL. It stays,
 * unchanged and where it is, until the scan is closed. Only columns that are not nested.
 */
typedef struct source_dictionary {
  struct ArrowArray values; /* of the column's own type */
  unsigned code_bytes;      /* 1 or 2 */
} source_dictionary;

/*
 * Where hf_blocks('<id>') gets rows. `open` once per scan (an input may be scanned several times in a query),
 * `thread_open` once per reader; `next` gives arrays of the block face with the projected columns (see arrow/ipc.h), of
 * at most 2048 rows each, length 0 at the end. The offset of the array, and of its STRUCT and UNION columns down to
 * lists, is 0; other columns may have one. Null counts are true. A column may come as codes: see source_dictionary. A reader is used by one thread at a time, which need
 * not always be the same.
 */
typedef struct source_ops {
  hf_status (*open)(void *source, const size_t *columns, size_t n_columns, void **scan, unsigned *threads,
                    hf_error *error);
  hf_status (*thread_open)(void *scan, void **state, hf_error *error);
  /* The structs are released by the engine before the next call; the buffers that they point to must stay until that
   * next call, or thread_close: vectors point into them, and DuckDB keeps no vector of a source over its next one. */
  hf_status (*next)(void *state, struct ArrowArray *out, hf_error *error);
  void (*thread_close)(void *state);
  void (*close)(void *scan);
} source_ops;

typedef struct engine_input {
  const char *id;
  const source_ops *ops;
  void *source;
  const schema *columns; /* of hf_blocks, as c0 …; an ENUM at any depth is given as VARCHAR */
  const struct ArrowSchema *block_schema; /* of all columns */
  uint64_t rows;                          /* exact */
} engine_input;

typedef struct engine_task {
  const char *id;      /* unique in this engine while it runs; letters, digits, '-' */
  const char *sql;     /* a query; with partitions > 1 its last column is the partition number, UINTEGER */
  uint32_t partitions; /* 1: no partition column */
  bool ordered;        /* one writer, rows in order */
  bool unpushed;       /* conditions are not pushed into scans */
  const sink_ops *ops;
  void *sink;
  const engine_input *inputs;
  size_t n_inputs;
} engine_task;

typedef struct engine_task_stats {
  /* Given by DuckDB's readers of files, after the filters pushed into them: 0 when none ran (only blocks, or answered
   * from a footer's statistics), at least 1 when one read a file that has rows. */
  uint64_t source_rows;
  uint64_t peak_memory_bytes; /* of DuckDB's buffers, in the whole instance */
  uint64_t spill_bytes;       /* the most that lay in DuckDB's temporary files */
} engine_task_stats;

/* Runs one task to its end. Errors: those of the query (typed, with position in `sql`); those of the sink and the
 * sources, as they gave them. All states are closed and discarded when it returns. */
hf_status engine_run_task(engine *e, const engine_task *task, engine_task_stats *stats, hf_error *error);
/* Fraction 0…1 of the running statement, or -1 when none runs or it is not known; rows read so far, about. Thread: any. */
void engine_progress(engine *e, double *fraction, uint64_t *rows);

/*
 * Runs a query over inputs and gives every value as text, as DuckDB's cast to VARCHAR spells it (a result shown to a
 * person). `row_batch` gets columns of texts: cells[column][row], NULL for SQL NULL; not NUL-safe: lengths are given.
 * It returns false to stop. Thread: that of the caller.
 */
typedef bool (*text_batch_fn)(void *context, const char *const *const *cells, const uint32_t *const *lengths,
                              size_t n_rows);
typedef struct engine_shown {
  const char *sql;
  const engine_input *inputs;
  size_t n_inputs;
} engine_shown;
hf_status engine_render(engine *e, const engine_shown *shown, text_batch_fn row_batch, void *context,
                        hf_error *error);

/* Runs a statement over inputs whose answer nobody wants: COPY (…) TO a file below an allowed directory. Errors: those of
 * the statement and of the sources. */
hf_status engine_copy(engine *e, const engine_shown *copied, hf_error *error);

#endif
