/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public C API of Holdfast: compute an expensive DataFrame once, hold the
 * result, reuse it.
 *
 * Ownership. `hf_*_open`, `hf_*_new` and every `out` parameter that receives a
 * handle return it owned by the caller; it is released by the matching
 * `hf_*_close` or `hf_*_free`, each of which accepts NULL. Text that a function
 * returns by `char **` is released with `hf_text_free`. Arrow structures are
 * released by their own `release` callback. Input pointers are borrowed for the
 * call unless the function says that it takes them.
 *
 * Errors. A function that can fail returns `hf_status`: HF_OK (0) or a negative
 * code from the list below (docs/errors.md explains each). The last parameter
 * `error` may be NULL; else it receives the details and is released with
 * `hf_error_reset`. After a failure all other outputs are untouched.
 *
 * Threads. A session and its DataFrames may be used from several threads at
 * once. One DataFrame handle must not be freed while another thread uses it.
 */
#ifndef HOLDFAST_HOLDFAST_H
#define HOLDFAST_HOLDFAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ Arrow
 * The Arrow C data and C stream interfaces.
 * Source: https://arrow.apache.org/docs/format/CDataInterface.html */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char *format;
  const char *name;
  const char *metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema **children;
  struct ArrowSchema *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
  int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
  const char *(*get_last_error)(struct ArrowArrayStream *);
  void (*release)(struct ArrowArrayStream *);
  void *private_data;
};
#endif

/* ----------------------------------------------------------------- errors */

/* HF_OK or one of the negative HF_E_* codes. */
typedef int32_t hf_status;

/* The order is that of the rows in src/base/errors.def; a build fails when the two differ. */
enum {
  HF_OK = 0,
  HF_E_INVALID_ARGUMENT = -1,
  HF_E_SYNTAX = -2,
  HF_E_TABLE_NOT_FOUND = -3,
  HF_E_COLUMN_NOT_FOUND = -4,
  HF_E_FUNCTION_NOT_FOUND = -5,
  HF_E_BIND = -6,
  HF_E_CAST = -7,
  HF_E_OVERFLOW = -8,
  HF_E_DIVIDE_BY_ZERO = -9,
  HF_E_QUERY = -10,
  HF_E_FILE_NOT_FOUND = -11,
  HF_E_FILE_FORMAT = -12,
  HF_E_STATEMENT_REFUSED = -13,
  HF_E_FUNCTION_REFUSED = -14,
  HF_E_PATH_REFUSED = -15,
  HF_E_SETTING_UNKNOWN = -16,
  HF_E_SETTING_VALUE = -17,
  HF_E_NAME_EXISTS = -18,
  HF_E_OUT_OF_MEMORY = -19,
  HF_E_DISK_FULL = -20,
  HF_E_IO = -21,
  HF_E_CANCELLED = -22,
  HF_E_BLOCK_MISSING = -23,
  HF_E_BLOCK_CORRUPT = -24,
  HF_E_HELD_MISMATCH = -25,
  HF_E_HELD_FOREIGN = -26,
  HF_E_SESSION_CLOSED = -27,
  HF_E_TASK_LOST = -28,
  HF_E_LIMIT = -29,
  HF_E_UNSUPPORTED = -30,
  HF_E_VERSION = -31,
  HF_E_WORK_DIR = -32,
  HF_E_PROTOCOL = -33,
  HF_E_INTERNAL = -34,
  HF_E_STATE_DIR = -35
};

/* Who can do something about an error, and whether trying again can help. */
typedef enum hf_error_class {
  HF_CLASS_NONE = 0,
  HF_CLASS_USER,      /* the query, its input or its settings; never tried again */
  HF_CLASS_RETRYABLE, /* the same work may succeed when it is tried again */
  HF_CLASS_FETCH,     /* a block could not be read back */
  HF_CLASS_RESOURCE,  /* memory, disk or a named limit */
  HF_CLASS_FATAL      /* a defect of Holdfast */
} hf_error_class;

/* Details of a failure. Zero-initialise; release with hf_error_reset. */
typedef struct hf_error {
  hf_status code;
  hf_error_class error_class;
  char sqlstate[6];
  uint64_t job;     /* 0: not known */
  uint32_t stage;   /* 0: not known */
  uint32_t task;    /* 0: not known; counts from 1 */
  uint32_t attempt; /* 0: not known; counts from 1 */
  char executor[40];
  int64_t position; /* byte offset in the SQL text, -1 or 0 with code HF_OK: not known */
  char *message;    /* what was found and what was expected */
  char *hint;       /* what to do; may be NULL */
  char *cause;      /* the underlying text, of the operating system or DuckDB; may be NULL */
} hf_error;

/* Releases what the error owns and zeroes it. Accepts NULL and a zeroed struct. */
void hf_error_reset(hf_error *error);

/* Returns the name of a status code, such as "COLUMN_NOT_FOUND"; static, never NULL. */
const char *hf_status_name(hf_status status);

/* Returns "0.1.0 (DuckDB v1.5.5)" or alike; static. */
const char *hf_version(void);

/* Releases text that a function of this API returned. Accepts NULL. */
void hf_text_free(char *text);

/* ---------------------------------------------------------------- session */

typedef struct hf_session hf_session;
typedef struct hf_df hf_df;
typedef struct hf_cancel hf_cancel;

/* One setting: a key of docs/configuration.md and its value as text. */
typedef struct hf_setting {
  const char *key;
  const char *value;
} hf_setting;

/*
 * Opens a session. `uri` "local" (or NULL) starts an engine inside this process
 * with the given settings (`settings` may be NULL when `n_settings` is 0).
 * Errors: HF_E_SETTING_UNKNOWN, HF_E_SETTING_VALUE, HF_E_WORK_DIR (cannot be
 * created or is locked by another process), HF_E_VERSION (another libduckdb than
 * the pinned one), HF_E_UNSUPPORTED (another kind of uri).
 * Thread: any. Cost: opens no DuckDB instance before the first query needs it.
 */
hf_status hf_session_open(const char *uri, const hf_setting *settings, size_t n_settings, hf_session **out,
                          hf_error *error);

/* Opens another session on the engine of `peer`: own names, settings and holds, shared threads and memory. */
hf_status hf_session_new(hf_session *peer, hf_session **out, hf_error *error);

/*
 * Closes a session: cancels its running queries, removes its views and held
 * results with their files. The last session of an engine ends the engine and
 * removes its work directory. Result streams that are still open stay readable
 * until they are released. Accepts NULL.
 */
void hf_session_close(hf_session *session);

/* Changes one setting for queries started from now on. Errors: HF_E_SETTING_UNKNOWN, HF_E_SETTING_VALUE. */
hf_status hf_session_set(hf_session *session, const char *key, const char *value, hf_error *error);

/* Returns the value in force as text, owned by the caller. Errors: HF_E_SETTING_UNKNOWN. */
hf_status hf_session_get(hf_session *session, const char *key, char **out, hf_error *error);

/* -------------------------------------------------------------- DataFrames */

/*
 * Makes a DataFrame from one SQL statement. A query (SELECT, FROM, VALUES, WITH,
 * DESCRIBE, SUMMARIZE) is parsed and its names are resolved now, and it runs when
 * an action asks. A command (CACHE TABLE, UNCACHE TABLE, CLEAR CACHE, REFRESH
 * TABLE, SHOW CACHE, SHOW TABLES, CREATE VIEW, DROP VIEW, SET, RESET, EXPLAIN)
 * runs now; the DataFrame holds its answer.
 * Errors: HF_E_SYNTAX (with `position`), HF_E_TABLE_NOT_FOUND, HF_E_STATEMENT_REFUSED,
 * HF_E_FUNCTION_REFUSED, HF_E_PATH_REFUSED and what the command itself meets.
 */
hf_status hf_session_sql(hf_session *session, const char *sql, hf_df **out, hf_error *error);

/*
 * Makes a DataFrame that reads files. `format` is "parquet", "csv" or "json";
 * `paths` are file names or glob patterns; `options` are reader options by name,
 * such as {"header", "true"}.
 * Errors: HF_E_FILE_NOT_FOUND, HF_E_FILE_FORMAT, HF_E_PATH_REFUSED, HF_E_INVALID_ARGUMENT.
 */
hf_status hf_session_read(hf_session *session, const char *format, const char *const *paths, size_t n_paths,
                          const hf_setting *options, size_t n_options, hf_df **out, hf_error *error);

/*
 * Makes a DataFrame of the rows of an Arrow stream. Takes the stream: it is read
 * to its end now and released, also on failure. The rows lie in the work
 * directory until the session closes.
 * Errors: HF_E_UNSUPPORTED (an Arrow type that is not taken, by name), HF_E_DISK_FULL, HF_E_INVALID_ARGUMENT.
 */
hf_status hf_session_from_stream(hf_session *session, struct ArrowArrayStream *stream, hf_df **out,
                                 hf_error *error);

/* Releases the handle. What it held stays held until unpersist or the session's end. Accepts NULL. */
void hf_df_free(hf_df *df);

/* Names the DataFrame for SQL text of this session. Errors: HF_E_NAME_EXISTS unless `replace`. */
hf_status hf_df_create_view(hf_df *df, const char *name, bool replace, hf_error *error);

/* Returns the Arrow schema of the result, without running it. */
hf_status hf_df_schema(hf_df *df, struct ArrowSchema *out, hf_error *error);

/* ----------------------------------------------------------------- actions */

/* Makes a token that cancels the action it is given to. Free it after that action has returned. */
hf_cancel *hf_cancel_new(void);
/* Cancels, from any thread or a signal handler; the action returns HF_E_CANCELLED. Accepts NULL. */
void hf_cancel_signal(hf_cancel *cancel);
void hf_cancel_free(hf_cancel *cancel);

/* What an action did; filled when it returns. */
typedef struct hf_profile {
  uint64_t job;
  uint64_t elapsed_us;   /* from the call to the committed result */
  uint64_t planning_us;  /* thereof parsing, binding and resolving names */
  uint64_t tasks_run;    /* tasks of this query and of the fills it started or waited for */
  uint64_t source_rows;  /* rows read from files and client data by those tasks */
  uint64_t source_files; /* files that those tasks were given to read */
  uint64_t held_hits;    /* held results read back that were there */
  uint64_t held_fills;   /* held results that this action had computed */
  uint64_t held_waits;   /* held results that it waited for while another action computed them */
  uint64_t held_inline;  /* held nodes computed inline, because a fill failed or was released */
  uint64_t held_rows;    /* rows read back from held results */
  uint64_t result_rows;
  uint64_t result_bytes;      /* bytes of Arrow data written for the result */
  uint64_t peak_memory_bytes; /* of the engine instance that ran the last task */
  char warning[240];          /* why something was computed inline; empty: nothing to say */
  uint64_t stages_run;        /* stages of this query and of its fills that ran at least one task */
  uint64_t widest_tasks;      /* the largest number of tasks with rows in one stage; 2 or more: distributed */
  char fallback[160];         /* why one task ran it although more were asked for; empty: none did */
} hf_profile;

/*
 * Progress of a running action: `fraction` from 0 to 1, or -1 while it is not
 * known; `rows` read so far. Called on the thread of the action about ten times
 * a second; return false to cancel.
 */
typedef bool (*hf_progress_fn)(void *context, double fraction, uint64_t rows);

typedef struct hf_action_options {
  hf_progress_fn progress; /* NULL: none */
  void *progress_context;
  hf_cancel *cancel;   /* NULL: none */
  hf_profile *profile; /* NULL: none; written when the action returns, also on failure */
} hf_action_options;

/*
 * Runs the DataFrame and returns its rows as a stream of record batches. The
 * result lies committed in the work directory: reading it needs no slot, and
 * what was read is given back. `options` may be NULL.
 * Errors: those of the query; HF_E_CANCELLED; HF_E_OUT_OF_MEMORY; HF_E_DISK_FULL.
 */
hf_status hf_df_collect(hf_df *df, const hf_action_options *options, struct ArrowArrayStream *out,
                        hf_error *error);

/* Counts the rows. */
hf_status hf_df_count(hf_df *df, const hf_action_options *options, uint64_t *out, hf_error *error);

/* Describes how the DataFrame would run: stages, SQL, inputs, held nodes with hit or miss. Runs nothing. */
hf_status hf_df_explain(hf_df *df, char **out, hf_error *error);

/* ----------------------------------------------------------------- holding */

/* Returns a DataFrame that is held from its first action on: persist at the default level. Runs nothing. */
hf_status hf_df_cache(hf_df *df, hf_df **out, hf_error *error);

/*
 * The same with a storage level: NULL or one of NONE, DISK_ONLY, DISK_ONLY_2,
 * DISK_ONLY_3, MEMORY_ONLY, MEMORY_ONLY_2, MEMORY_AND_DISK, MEMORY_AND_DISK_2,
 * MEMORY_AND_DISK_DESER, OFF_HEAP. Every level is kept and told again; one store
 * (block files kept warm by the page cache) serves them all. NONE holds nothing.
 */
hf_status hf_df_persist(hf_df *df, const char *level, hf_df **out, hf_error *error);

/*
 * Lets the result of hf_df_cache or hf_df_persist go: its files are deleted and
 * every later use computes without filling again. `blocking` waits for the
 * files to be gone. Of a DataFrame that is not held: nothing happens, HF_OK.
 */
hf_status hf_df_unpersist(hf_df *df, bool blocking, hf_error *error);

typedef enum hf_hold_state {
  HF_HOLD_NOT_DECLARED = 0, /* never cached */
  HF_HOLD_DECLARED,         /* cached, not computed yet */
  HF_HOLD_PENDING,          /* being computed */
  HF_HOLD_MATERIALISED,     /* there */
  HF_HOLD_UNAVAILABLE,      /* there, on an executor that is away */
  HF_HOLD_RELEASED          /* let go by unpersist */
} hf_hold_state;

typedef struct hf_storage {
  hf_hold_state state;
  char level[32];
  char cache_id[37];
  uint64_t rows, bytes, hits;
  uint64_t generation; /* counts its computations, from 1 */
  bool indeterminate;  /* computing it again may give other rows */
} hf_storage;

/* Tells how the DataFrame is held. Never computes, claims or waits. */
hf_status hf_df_storage(hf_df *df, hf_storage *out, hf_error *error);

#ifdef __cplusplus
}
#endif
#endif
