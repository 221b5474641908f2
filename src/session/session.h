/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user's session: settings, names, operations. The one entry that the C API,
 * the command line and (later) Spark Connect share.
 */
#ifndef HF_SESSION_SESSION_H
#define HF_SESSION_SESSION_H

#include "base/config.h"
#include "relation/build.h"
#include "relation/relation.h"
#include "sql/statement.h"
#include "scheduler/scheduler.h"

typedef struct session session;

/*
 * Opens a session on an engine of its own (`peer` NULL) or on that of `peer`. Settings as hf_session_open; on an engine
 * that runs already, keys of engine scope are SETTING_VALUE. Returns a reference in *out.
 */
hf_status session_open(const hf_setting *settings, size_t n_settings, session *peer, session **out,
                       hf_error *error);
/*
 * See hf_session_close; drops the opener's reference. Calls that other threads have in flight end with SESSION_CLOSED
 * and are waited for; not to be called out of a callback of one. Accepts NULL.
 */
void session_close(session *s);
/* Keep the struct alive for a handle that refers to it; every function of a closed session says SESSION_CLOSED. */
session *session_retain(session *s);
void session_release(session *s);
/* Opens the engine's instances in the background while the caller does something else. */
void session_warm(session *s);

hf_status session_set(session *s, const char *key, const char *value, hf_error *error);
hf_status session_reset_setting(session *s, const char *key, hf_error *error);
hf_status session_get(session *s, const char *key, char **out, hf_error *error);
/* Absolute path; valid while the session is open. */
const char *session_work_dir(const session *s);

/*
 * One SQL statement. A query gives a relation in *out (retained for the caller). A command runs now and gives a relation
 * of its answer (RELATION_SQL over VALUES, typed) or, when it has none, *out NULL.
 * `watch` serves commands that compute (CACHE TABLE); NULL: none. `profile` likewise.
 */
hf_status session_sql(session *s, const char *sql, const job_watch *watch, hf_profile *profile,
                      relation **out, hf_error *error);
/* Files to read; borrowed. `options` are reader options by name, their values as plain text, a list or a struct. */
typedef struct session_files {
  const char *format;
  const char *const *paths;
  size_t n_paths;
  const hf_setting *options;
  size_t n_options;
} session_files;
hf_status session_read(session *s, const session_files *files, relation **out, hf_error *error);
/* Takes the stream. */
hf_status session_from_stream(session *s, struct ArrowArrayStream *stream, relation **out, hf_error *error);

/* A step over relations of this session; see relation_build. Runs nothing. */
hf_status session_build(session *s, const build_step *step, relation **out, hf_error *error);

hf_status session_create_view(session *s, const relation *r, const char *name, bool replace, hf_error *error);
hf_status session_schema(session *s, const relation *r, struct ArrowSchema *out, hf_error *error);
hf_status session_explain(session *s, const relation *r, char **out, hf_error *error);
/* Runs it, lets the result go, and tells what it did. */
hf_status session_explain_analyze(session *s, const relation *r, const job_watch *watch, hf_profile *profile,
                                  char **out, hf_error *error);

/* Runs and opens a client's stream over the committed result; releasing it lets the result go. */
hf_status session_collect(session *s, const relation *r, const job_watch *watch, hf_profile *profile,
                          struct ArrowArrayStream *out, hf_error *error);
hf_status session_count(session *s, const relation *r, const job_watch *watch, hf_profile *profile,
                        uint64_t *out, hf_error *error);

/*
 * Runs and shows every value as text, as DuckDB spells it. `head` is called once with the columns before the first
 * rows; either returns false to stop.
 */
typedef struct text_sink {
  bool (*head)(void *context, const schema *columns);
  text_batch_fn rows;
  void *context;
} text_sink;
hf_status session_show(session *s, const relation *r, const job_watch *watch, hf_profile *profile,
                       const text_sink *sink, hf_error *error);

/* A file to write; borrowed. `format` is "parquet" or "csv"; options are the writer's by name, their values as text. */
typedef struct session_target {
  const char *format, *path;
  bool overwrite;
  const hf_setting *options;
  size_t n_options;
} session_target;
typedef struct session_write_call {
  const relation *relation;
  const session_target *target;
  const job_watch *watch;
  hf_profile *profile; /* or NULL */
} session_write_call;
/* See hf_df_write_parquet. */
hf_status session_write(session *s, const session_write_call *call, hf_error *error);

/*
 * A cache node over `r` with a declaration of its own; level NULL: MEMORY_AND_DISK_DESER; NONE: `r` itself, not held.
 * `name` is CACHE TABLE's, or NULL. Errors: INVALID_ARGUMENT (level), and those of binding the query.
 */
hf_status session_cache(session *s, const relation *r, const char *level, const char *name, relation **out,
                        hf_error *error);
hf_status session_unpersist(session *s, const relation *r, bool blocking, hf_error *error);
hf_status session_storage(session *s, const relation *r, hf_storage *out, hf_error *error);
/* Calls `each` for every hold of the session that was not let go, in the order of declaring; the row is borrowed for the
 * call, in which the session must not be called. */
hf_status session_each_hold(session *s, void (*each)(void *context, const hold_row *row), void *context,
                            hf_error *error);
/* Lets a hold go that is named by its table's name or its cache id; the name becomes what it is without. Errors:
 * TABLE_NOT_FOUND. */
hf_status session_drop_hold(session *s, const char *name_or_id, hf_error *error);
/*
 * To be called after files at or below the path (a file or a directory, there or gone) were written or deleted by
 * Holdfast, also when that failed half way: held results of any session of the engine that were computed from files
 * there are dropped, and fills that read them are begun again. Does not wait.
 */
void session_note_written(session *s, const char *path);

/* Names for completion: views, cached tables; `each` returns false to stop. */
void session_each_name(session *s, bool (*each)(void *context, const char *name), void *context);

#endif
