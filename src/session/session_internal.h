/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session struct, and what its operations share: every operation stands
 * between session_enter and session_leave.
 * Thread: any, several at once.
 */
#ifndef HF_SESSION_INTERNAL_H
#define HF_SESSION_INTERNAL_H

#include "session/runtime.h"
#include "session/session.h"

#include <pthread.h>
#include <stdatomic.h>

/* ------------------------------------------------------------------ names.c
 * Views and cached tables, found without regard to letter case. A list is immutable and reference counted: who parses a
 * query keeps the list it started with, a change makes a new one. Thread: any. */

/* What a name stands for; borrowed from its list. */
typedef struct name_entry {
  const char *name;      /* as it was given */
  const relation *bound; /* what SQL text gets */
  const relation *plain; /* of a view that CACHE TABLE holds: what it is without the hold; else NULL */
  bool cache_made;       /* made by CACHE TABLE … AS: goes with its hold */
} name_entry;

typedef struct name_list name_list; /* sorted by name */

name_list *name_list_retain(name_list *list);
/* Accepts NULL. */
void name_list_release(name_list *list);
size_t name_list_count(const name_list *list);
const name_entry *name_list_at(const name_list *list, size_t i);
/* NULL: the list has no such name. */
const name_entry *name_list_find(const name_list *list, const char *name);
/* Sets TABLE_NOT_FOUND for a name that is not in the list: "<what>: <name>", and the nearest name as hint. */
hf_status name_list_missing(const name_list *list, const char *what, const char *name, hf_error *error);
/* What relation_from_sql asks for names; borrows the list. */
relation_names name_list_for_sql(name_list *list);

/* The list in force. */
typedef struct names {
  pthread_mutex_t lock;
  name_list *list; /* guarded by lock */
} names;

/* Errors: OUT_OF_MEMORY. */
hf_status names_init(names *n, hf_error *error);
void names_destroy(names *n);
/* Returns the list in force, retained for the caller. */
name_list *names_snapshot(names *n);
/* Puts these in place of all names, of which there are none yet; what they point at is copied or retained. Of two that are
 * alike the first counts. Errors: OUT_OF_MEMORY. */
hf_status names_fill(names *n, name_entry *entries, size_t n_entries, hf_error *error);

/*
 * Puts `entry` in the place of what `name` is bound to now, in one step. `expected` says what that is (NULL: the name
 * is free); `entry` NULL removes the name; what it points at is copied or retained. *done is false, and nothing has
 * changed, when the name is bound to something else. Errors: OUT_OF_MEMORY.
 */
hf_status names_exchange(names *n, const char *name, const relation *expected, const name_entry *entry,
                         bool *done, hf_error *error);

/* ---------------------------------------------------------------- session.c */

struct session {
  atomic_uint references;
  uuid id;
  runtime *runtime; /* not to be used once it is closed and idle */
  names names;      /* has a lock of its own */
  pthread_mutex_t lock;
  pthread_cond_t idle; /* calls became 0 */
  bool closed;         /* guarded by lock */
  unsigned calls;      /* guarded by lock: operations in flight */
  config *settings;    /* guarded by lock */
  uint64_t n_data;     /* guarded by lock: Arrow streams taken so far */

  journal *journal;            /* of the session that outlives the process, else NULL */
  pthread_mutex_t record_lock; /* held while a name or the settings are looked at and put */
  bool is_set[CONFIG_COUNT];   /* guarded by lock: by SET */
  bool has_unread_names;       /* set at the start: nothing is trimmed */
};

/* Counts an operation in. Errors: SESSION_CLOSED. */
hf_status session_enter(session *s, hf_error *error);
/* Counts it out; returns `status`. The session may be gone right after. */
hf_status session_leave(session *s, hf_status status);
bool session_is_closed(session *s);

/* The settings in force, for a job; memory in `a`. Errors: OUT_OF_MEMORY. */
hf_status settings_for_job(session *s, arena *a, job_settings *out, hf_error *error);
/* Sets what hf_session_open was given. `engine_runs`: keys of engine scope are refused. */
hf_status settings_apply(config *settings, const hf_setting *given, size_t n_given, bool engine_runs,
                         hf_error *error);
/* The value in force in `settings`, as text owned by the caller; "auto" where the engine works it out. */
hf_status settings_text(session *s, config_key key, char **out, hf_error *error);

/* Runs `use` with an engine that has the session's settings; as scheduler_with_planner. */
hf_status session_with_planner(session *s, hf_status (*use)(void *context, engine *planner, hf_error *error),
                               void *context, hf_error *error);
/* Parses a query and binds its names. */
hf_status query_relation(session *s, const char *sql, relation **out, hf_error *error);
/* The same, and looks up first, by jobs, the values that a PIVOT does not list. */
hf_status query_relation_now(session *s, const char *sql, const job_watch *watch, relation **out,
                             hf_error *error);
/* The same with one name, q, that stands for `input`. */
hf_status query_over(session *s, const char *sql, const relation *input, relation **out, hf_error *error);

/* Runs a relation; *out as scheduler_run gives it. Errors: those; CANCELLED of a closed session is SESSION_CLOSED. */
hf_status result_run(session *s, const relation *r, const job_watch *watch, hf_profile *profile,
                     job_result *out, hf_error *error);

/* A cache node over `r`, declared; `level` is the name of a storage level, not NONE. */
hf_status hold_declare(session *s, const relation *r, const char *level, const char *name, relation **out,
                       hf_error *error);
/* Finds a storage level by name (NULL: the default; letter case set aside). Errors: INVALID_ARGUMENT. */
hf_status hold_level(const char *name, const char **out, hf_error *error);
/* Tells whether the relation is a cache node that was not let go. */
bool hold_is_held(session *s, const relation *r);
/* Lets the hold of a cache node of this session go; of any other relation: nothing. */
void hold_release(session *s, const relation *r, hold_wait wait);

/* Holds of the session `of` (NULL: all) that were computed from files at or below the path go; `why` is static text. */
void hold_note_changed(session *s, const uuid *of, const char *path, const char *why);

/* Names a relation. Errors: NAME_EXISTS unless `replace`. A hold that CACHE TABLE made for the old meaning is let go. */
hf_status view_put(session *s, const relation *r, const char *name, bool replace, hf_error *error);

/* build.c: as session_build, for those who have entered the session. */
hf_status build_step_over(session *s, const build_step *step, relation **out, hf_error *error);

/* cached_tables.c: the CACHE family of commands, for those who have entered the session. */
/* What CACHE TABLE was given; borrowed. */
typedef struct cache_table_request {
  const char *name;
  const char *level; /* NULL: the default */
  const char
      *partition_by;   /* columns by whose hash its rows are dealt, with commas between; NULL: they are not */
  uint64_t partitions; /* 0: the default */
  const relation *query; /* of CACHE TABLE … AS; NULL: the view of that name */
  bool lazy;
  const job_watch *watch; /* or NULL */
  hf_profile *profile;    /* of the fill, or NULL */
} cache_table_request;

/* Errors: TABLE_NOT_FOUND, NAME_EXISTS, INVALID_ARGUMENT (level), and those of the fill; nothing is left then. */
hf_status cache_table(session *s, const cache_table_request *request, hf_error *error);
/* Errors: TABLE_NOT_FOUND unless `if_exists`. */
hf_status uncache_table(session *s, const char *name, bool if_exists, hf_error *error);
/* Lets every hold of the session go, those without a name too. */
hf_status clear_cache(session *s, hf_error *error);
/* Drops the data of the name's hold, of holds in it and on top of these, and of what was computed from its files. Errors:
 * TABLE_NOT_FOUND. */
hf_status refresh_table(session *s, const char *name, hf_error *error);
/* Drops the data of holds computed from files at or below the path (of a pattern: its fixed directory). */
hf_status refresh_path(session *s, const char *path, hf_error *error);

/* listings.c: what SHOW and EXPLAIN answer, as relations. Holds of the session that were not let go: */
hf_status listing_holds(session *s, relation **out, hf_error *error);
/* Views and cached tables. */
hf_status listing_names(session *s, relation **out, hf_error *error);
/* One setting, or all of them for "all" and "settings". Errors: SETTING_UNKNOWN. */
hf_status listing_settings(session *s, const char *name, relation **out, hf_error *error);
/* A text, a row a line; it is cut into its lines. */
hf_status listing_plan(session *s, char *text, relation **out, hf_error *error);

/* ---------------------------------------------------------- client_data.c */

/* Removes the files of the Arrow streams that the session took. */
void client_data_remove(session *s);
/* The directory of the stream of that number, in the arena; NULL: no memory. */
const char *client_data_dir(const session *s, uint64_t number, arena *a);
/* Where the blocks are, for the engine's sweep. */
block_ref client_data_ref(const uuid *owner, uint64_t number);
/* The number is taken. */
void client_data_note(session *s, uint64_t number);
void client_data_delete(session *s, uint64_t number);

/* ------------------------------------- durable.c: nothing without a journal */

/* Goes on where the last start ended; `given` settings have been set already. Errors: STATE_DIR, OUT_OF_MEMORY. */
hf_status durable_start(session *s, const hf_setting *given, size_t n_given, hf_error *error);
/* Writes what the name is now, or that it is not. Errors: STATE_DIR, DISK_FULL, LIMIT (its relation is too large). */
hf_status durable_name(session *s, const char *name, hf_error *error);
/* Binds a name to what it was before (NULL: to nothing), after a command that failed; what was put of it before is undone
 * when the journal can be written again. */
void name_undo(session *s, const name_entry *entry, const name_entry *before);
/* Writes what SET has changed. */
hf_status durable_settings(session *s, hf_error *error);
/* Writes of client data what is needed to find it again. */
void durable_data(session *s, const relation *local, uint64_t number);
/* Waits until all that was done is written. */
hf_status durable_flush(session *s, hf_error *error);
/* Lets the holds and client data go that no name leads to. */
void durable_trim(session *s);

#endif
