/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a session: views and cached tables, found without regard to
 * letter case. A list is immutable and reference counted: who parses a query
 * keeps the list it started with, a change makes a new one.
 * Thread: any.
 */
#ifndef HF_SESSION_NAMES_H
#define HF_SESSION_NAMES_H

#include "plan/relation.h"

#include <pthread.h>

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

/*
 * Puts `entry` in the place of what `name` is bound to now, in one step. `expected` says what that is (NULL: the name
 * is free); `entry` NULL removes the name; what it points at is copied or retained. *done is false, and nothing has
 * changed, when the name is bound to something else. Errors: OUT_OF_MEMORY.
 */
hf_status names_exchange(names *n, const char *name, const relation *expected, const name_entry *entry,
                         bool *done, hf_error *error);

#endif
