/* SPDX-License-Identifier: Apache-2.0 */
/* The CACHE family of commands. For those who have entered the session. Thread: any. */
#ifndef HF_SESSION_CACHED_TABLES_H
#define HF_SESSION_CACHED_TABLES_H

#include "session/session_internal.h"

/* What CACHE TABLE was given; borrowed. */
typedef struct cache_table_request {
  const char *name;
  const char *level;     /* NULL: the default */
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

#endif
