/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of views and cached tables: lists, lookup, suggestions, the exchange.
 * What the commands do with them is in commands.c and holding.c.
 * Thread: any. Lists never change; names.lock guards which one is in force.
 */
#include "session/session_internal.h"

#include "base/mem.h"
#include "base/nearest.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct name_list {
  atomic_uint references;
  size_t n_entries;
  name_entry entries[]; /* sorted by name, letter case set aside; owned */
};

/* ------------------------------------------------------------------- lists */

static name_list *list_new(size_t capacity) {
  if (capacity > (SIZE_MAX - sizeof(name_list)) / sizeof(name_entry)) {
    return NULL;
  }
  name_list *list = mem_zalloc(1, sizeof *list + capacity * sizeof(name_entry));
  if (list != NULL) {
    atomic_init(&list->references, 1);
  }
  return list;
}

/* Appends a copy; false for lack of memory. */
static bool list_append(name_list *list, const name_entry *from) {
  char *name = mem_strdup(from->name);
  if (name == NULL) {
    return false;
  }
  name_entry *entry = &list->entries[list->n_entries++];
  *entry = *from;
  entry->name = name;
  entry->bound = relation_retain(from->bound);
  entry->plain = from->plain == NULL ? NULL : relation_retain(from->plain);
  return true;
}

name_list *name_list_retain(name_list *list) {
  atomic_fetch_add(&list->references, 1);
  return list;
}

void name_list_release(name_list *list) {
  if (list == NULL || atomic_fetch_sub(&list->references, 1) != 1) {
    return;
  }
  for (size_t i = 0; i < list->n_entries; i++) {
    name_entry *entry = &list->entries[i];
    mem_free((char *)entry->name);
    relation_release(entry->bound);
    if (entry->plain != NULL) {
      relation_release(entry->plain);
    }
  }
  mem_free(list);
}

size_t name_list_count(const name_list *list) {
  return list->n_entries;
}

const name_entry *name_list_at(const name_list *list, size_t i) {
  return &list->entries[i];
}

/* Index of the first entry that is not before `name`. */
static size_t lower_bound(const name_list *list, const char *name) {
  size_t low = 0;
  size_t high = list->n_entries;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcasecmp(list->entries[middle].name, name) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

const name_entry *name_list_find(const name_list *list, const char *name) {
  size_t at = lower_bound(list, name);
  if (at == list->n_entries || strcasecmp(list->entries[at].name, name) != 0) {
    return NULL;
  }
  return &list->entries[at];
}

/* A copy without the entry of that name and with `entry`, where not NULL, in its place. */
static name_list *list_with(const name_list *from, const char *name, const name_entry *entry) {
  name_list *list = list_new(from->n_entries + 1);
  if (list == NULL) {
    return NULL;
  }
  size_t at = lower_bound(from, name);
  bool complete = true;
  for (size_t i = 0; complete && i < at; i++) {
    complete = list_append(list, &from->entries[i]);
  }
  if (complete && entry != NULL) {
    complete = list_append(list, entry);
  }
  if (at < from->n_entries && strcasecmp(from->entries[at].name, name) == 0) {
    at++;
  }
  for (size_t i = at; complete && i < from->n_entries; i++) {
    complete = list_append(list, &from->entries[i]);
  }
  if (!complete) {
    name_list_release(list);
    return NULL;
  }
  return list;
}

/* ------------------------------------------------------------- suggestions */

hf_status name_list_missing(const name_list *list, const char *what, const char *name, hf_error *error) {
  error_set(error, HF_E_TABLE_NOT_FOUND, "%s: %s", what, name);
  nearest search = nearest_to(name);
  for (size_t i = 0; i < list->n_entries; i++) {
    nearest_offer(&search, list->entries[i].name);
  }
  if (search.best != NULL) {
    error_hint(error, "did you mean %s? SHOW TABLES lists the names of the session", search.best);
  } else {
    error_hint(error, "SHOW TABLES lists the names of the session");
  }
  return HF_E_TABLE_NOT_FOUND;
}

/* --------------------------------------------------------------- SQL names */

static const relation *lookup(void *context, const char *name) {
  const name_entry *entry = name_list_find(context, name);
  return entry == NULL ? NULL : entry->bound;
}

static const char *name_at(void *context, size_t i) {
  const name_list *list = context;
  return i < list->n_entries ? list->entries[i].name : NULL;
}

relation_names name_list_for_sql(name_list *list) {
  return (relation_names){.lookup = lookup, .name_at = name_at, .context = list};
}

/* ---------------------------------------------------------- list in force */

hf_status names_init(names *n, hf_error *error) {
  n->list = list_new(0);
  if (n->list == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the names of a session");
  }
  pthread_mutex_init(&n->lock, NULL);
  return HF_OK;
}

void names_destroy(names *n) {
  if (n->list == NULL) {
    return;
  }
  name_list_release(n->list);
  n->list = NULL;
  pthread_mutex_destroy(&n->lock);
}

name_list *names_snapshot(names *n) {
  pthread_mutex_lock(&n->lock);
  name_list *list = name_list_retain(n->list);
  pthread_mutex_unlock(&n->lock);
  return list;
}

static int name_order(const void *a, const void *b) {
  return strcasecmp(((const name_entry *)a)->name, ((const name_entry *)b)->name);
}

hf_status names_fill(names *n, name_entry *entries, size_t n_entries, hf_error *error) {
  if (n_entries == 0) {
    return HF_OK;
  }
  qsort(entries, n_entries, sizeof *entries, name_order);
  name_list *list = list_new(n_entries);
  bool is_complete = list != NULL;
  for (size_t i = 0; is_complete && i < n_entries; i++) {
    bool is_again = i > 0 && strcasecmp(entries[i].name, entries[i - 1].name) == 0;
    is_complete = is_again || list_append(list, &entries[i]);
  }
  if (!is_complete) {
    name_list_release(list);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the names of a session");
  }
  pthread_mutex_lock(&n->lock);
  name_list *old = n->list;
  n->list = list;
  pthread_mutex_unlock(&n->lock);
  name_list_release(old);
  return HF_OK;
}

hf_status names_exchange(names *n, const char *name, const relation *expected, const name_entry *entry,
                         bool *done, hf_error *error) {
  name_list *old = NULL;
  bool failed = false;
  pthread_mutex_lock(&n->lock);
  const name_entry *present = name_list_find(n->list, name);
  *done = (present == NULL ? NULL : present->bound) == expected;
  if (*done) {
    name_list *changed = list_with(n->list, name, entry);
    failed = changed == NULL;
    old = failed ? NULL : n->list;
    n->list = failed ? n->list : changed;
  }
  pthread_mutex_unlock(&n->lock);
  name_list_release(old);
  if (failed) {
    *done = false;
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a name of the session: %s", name);
  }
  return HF_OK;
}
