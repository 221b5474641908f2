/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CACHE TABLE, UNCACHE TABLE, CLEAR CACHE, REFRESH TABLE: holds that have a name.
 * CACHE TABLE t AS makes the name; CACHE TABLE v binds a view's name to a cache
 * node until UNCACHE TABLE puts the view's own relation back.
 * Thread: any, several at once: a name changes by names_exchange only.
 */
#include "session/session_internal.h"

#include "base/mem.h"

#include <string.h>

/* -------------------------------------------------------------- CACHE TABLE */

enum { DEFAULT_PARTITIONS = 16 };

/* Takes the next name of a list with commas between; "odd, name" has quotes. */
static char *next_name(const char **at, arena *a) {
  buf name = {0};
  const char *from = *at + strspn(*at, " \t\n");
  bool quoted = *from == '"';
  from += quoted;
  for (; *from != '\0' && (quoted ? *from != '"' || from[1] == '"' : *from != ','); from++) {
    from += quoted && *from == '"';
    buf_char(&name, *from);
  }
  from += quoted && *from == '"';
  while (!quoted && name.length > 0 && strchr(" \t\n", name.data[name.length - 1]) != NULL) {
    name.length--;
  }
  from += strcspn(from, ",");
  *at = *from == ',' ? from + 1 : from;
  char *copy = name.failed ? NULL : arena_strndup(a, name.length == 0 ? "" : name.data, name.length);
  buf_reset(&name);
  return copy;
}

/* A relation that is to be held dealt by the hash of columns. */
static hf_status deal(session *s, const relation *r, const cache_table_request *request, arena *a,
                      relation **out, hf_error *error) {
  const char *at = request->partition_by;
  build_expression *keys = arena_array(a, strlen(at) + 1, sizeof *keys);
  build_step step = {.kind = BUILD_REPARTITION,
                     .input = r,
                     .expressions = keys,
                     .limit = request->partitions == 0 ? DEFAULT_PARTITIONS : request->partitions};
  bool is_complete = keys != NULL;
  while (is_complete && (step.n_expressions == 0 || *at != '\0')) {
    keys[step.n_expressions].text = next_name(&at, a);
    is_complete = keys[step.n_expressions++].text != NULL;
  }
  return is_complete ? build_step_over(s, &step, out, error)
                     : error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the columns to partition by");
}

/* What is to be held; to be released. */
static hf_status deal_if_asked(session *s, const relation *r, const cache_table_request *request,
                               relation **out, hf_error *error) {
  if (request->partition_by == NULL) {
    *out = relation_retain(r);
    return HF_OK;
  }
  arena *a = arena_new();
  hf_status status = a == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to hold a result")
                               : deal(s, r, request, a, out, error);
  arena_free(a);
  return status;
}

/* Makes the hold's data be there: a query over it that wants no rows still fills it. */
static hf_status fill(session *s, const relation *node, const cache_table_request *request, hf_error *error) {
  relation *nothing = NULL;
  HF_TRY(query_over(s, "SELECT * FROM q LIMIT 0", node, &nothing, error));
  job_result result;
  hf_status status = result_run(s, nothing, request->watch, request->profile, &result, error);
  relation_release(nothing);
  HF_TRY(status);
  scheduler_release_result(runtime_scheduler(s->runtime), result.job);
  arena_free(result.memory);
  return HF_OK;
}

static hf_status name_is_taken(const char *name, bool by_hold, hf_error *error) {
  error_set(error, HF_E_NAME_EXISTS, "%s has this name: %s", by_hold ? "a cached table" : "a view", name);
  error_hint(error,
             by_hold ? "let it go first: UNCACHE TABLE %s"
                     : "cache the view itself, or drop it first: DROP VIEW %s",
             name);
  return HF_E_NAME_EXISTS;
}

/* Finds what is to be held and what the name is to be bound to then, but for the node itself. */
static hf_status plan_entry(session *s, const name_entry *present, const cache_table_request *request,
                            name_entry *out, hf_error *error) {
  *out = (name_entry){.name = request->name, .cache_made = request->query != NULL};
  if (present == NULL) {
    return HF_OK;
  }
  bool held = hold_is_held(s, present->bound);
  if (request->query != NULL || held) {
    return name_is_taken(request->name, held, error);
  }
  out->name = present->name;
  out->plain = present->plain != NULL ? present->plain : present->bound;
  return HF_OK;
}

/* Binds the name to the node and fills it; on failure the name is as before. */
static hf_status bind_and_fill(session *s, const cache_table_request *request, const name_entry *present,
                               const name_entry *entry, hf_error *error) {
  bool done = false;
  const relation *expected = present == NULL ? NULL : present->bound;
  HF_TRY(names_exchange(&s->names, request->name, expected, entry, &done, error));
  if (!done) {
    return name_is_taken(request->name, true, error);
  }
  hf_status status = request->lazy ? HF_OK : fill(s, entry->bound, request, error);
  if (status == HF_OK) {
    status = durable_name(s, request->name, error);
  }
  if (status != HF_OK) {
    name_undo(s, entry, present);
  }
  return status;
}

static hf_status cache_in(session *s, const name_list *list, const cache_table_request *request,
                          const char *level, hf_error *error) {
  const name_entry *present = name_list_find(list, request->name);
  if (present == NULL && request->query == NULL) {
    return name_list_missing(list, "no view has this name", request->name, error);
  }
  name_entry entry;
  HF_TRY(plan_entry(s, present, request, &entry, error));
  relation *node = NULL, *held = NULL;
  HF_TRY(deal_if_asked(s, request->query != NULL ? request->query : entry.plain, request, &held, error));
  hf_status declared = hold_declare(s, held, level, entry.name, &node, error);
  relation_release(held);
  HF_TRY(declared);
  entry.bound = node;
  hf_status status = bind_and_fill(s, request, present, &entry, error);
  if (status != HF_OK) {
    hold_release(s, node, HOLD_WAIT_FILES);
  }
  relation_release(node);
  return status;
}

hf_status cache_table(session *s, const cache_table_request *request, hf_error *error) {
  const char *level;
  HF_TRY(hold_level(request->level, &level, error));
  if (strcmp(level, "NONE") == 0) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "CACHE TABLE cannot hold at the storage level: %s", level);
  }
  name_list *list = names_snapshot(&s->names);
  hf_status status = cache_in(s, list, request, level, error);
  name_list_release(list);
  return status;
}

/* ---------------------------------------------------------- UNCACHE, CLEAR */

/* Takes the hold off a name: a table of CACHE TABLE … AS disappears, a view is itself again. False when another thread
 * changed the name meanwhile. */
static hf_status unbind(session *s, const name_entry *present, bool *done, hf_error *error) {
  name_entry plain = {.name = present->name, .bound = present->plain};
  *done = true;
  if (present->cache_made || present->plain != NULL) {
    HF_TRY(names_exchange(&s->names, present->name, present->bound, present->cache_made ? NULL : &plain, done,
                          error));
  }
  if (*done) {
    HF_TRY(durable_name(s, present->name, error));
    hold_release(s, present->bound, HOLD_WAIT_FILES);
  }
  return HF_OK;
}

static hf_status uncache_in(session *s, const name_list *list, const char *name, bool if_exists, bool *done,
                            hf_error *error) {
  const name_entry *present = name_list_find(list, name);
  bool held =
      present != NULL && (present->cache_made || present->plain != NULL || hold_is_held(s, present->bound));
  *done = true;
  if (held) {
    return unbind(s, present, done, error);
  }
  if (if_exists) {
    return HF_OK;
  }
  name_list_missing(list, "no cached table has this name", name, error);
  if (present != NULL) {
    error_hint(error, "%s is a view that is not cached; CACHE TABLE %s caches it", present->name,
               present->name);
  }
  return HF_E_TABLE_NOT_FOUND;
}

hf_status uncache_table(session *s, const char *name, bool if_exists, hf_error *error) {
  for (bool done = false; !done;) {
    name_list *list = names_snapshot(&s->names);
    hf_status status = uncache_in(s, list, name, if_exists, &done, error);
    name_list_release(list);
    HF_TRY(status);
  }
  return HF_OK;
}

/* Cache ids of a listing. */
typedef struct key_list {
  uuid *keys;
  size_t count, capacity;
  bool failed;
} key_list;

static void add_key(void *context, const hold_row *row) {
  key_list *list = context;
  if (row->storage.state == HF_HOLD_RELEASED) {
    return;
  }
  if (list->count == list->capacity) {
    size_t capacity = list->capacity * 2 + 8;
    uuid *keys = mem_realloc(list->keys, capacity * sizeof *keys);
    if (keys == NULL) {
      list->failed = true;
      return;
    }
    list->keys = keys;
    list->capacity = capacity;
  }
  memcpy(list->keys[list->count++].text, row->storage.cache_id, sizeof list->keys->text);
}

/* Puts every name that a hold has taken back to what it is without. */
static hf_status unbind_all(session *s, hf_error *error) {
  name_list *list = names_snapshot(&s->names);
  hf_status status = HF_OK;
  for (size_t i = 0; status == HF_OK && i < name_list_count(list); i++) {
    bool ignored;
    status = unbind(s, name_list_at(list, i), &ignored, error);
  }
  name_list_release(list);
  return status;
}

hf_status clear_cache(session *s, hf_error *error) {
  HF_TRY(unbind_all(s, error));
  key_list list = {0};
  scheduler_list_holds(runtime_scheduler(s->runtime), &s->id, add_key, &list);
  for (size_t i = 0; i < list.count; i++) {
    scheduler_unpersist(runtime_scheduler(s->runtime), &list.keys[i], HOLD_WAIT_FILES);
  }
  mem_free(list.keys);
  return list.failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to list the holds of a session")
                     : HF_OK;
}

/* ------------------------------------------------------ one hold, by name or id */

/* Of a cache id: is it declared and not let go? */
typedef struct hold_search {
  uuid id;
  bool is_there;
} hold_search;

static void match_hold(void *context, const hold_row *row) {
  hold_search *search = context;
  bool is_live = row->storage.state != HF_HOLD_RELEASED;
  search->is_there = search->is_there || (is_live && strcmp(row->storage.cache_id, search->id.text) == 0);
}

/* The name that is bound to the hold; NULL: none. Borrowed from the list. */
static const char *name_of_hold(const name_list *list, const uuid *id) {
  for (size_t i = 0; i < name_list_count(list); i++) {
    relation_view view = relation_look(name_list_at(list, i)->bound);
    if (view.kind == RELATION_CACHE && uuid_equal(&view.cache_id, id)) {
      return name_list_at(list, i)->name;
    }
  }
  return NULL;
}

static hf_status drop_hold(session *s, const char *name_or_id, hf_error *error) {
  hold_search search = {0};
  if (!uuid_parse(name_or_id, &search.id)) {
    return uncache_table(s, name_or_id, false, error);
  }
  scheduler_list_holds(runtime_scheduler(s->runtime), &s->id, match_hold, &search);
  if (!search.is_there) {
    return error_set(error, HF_E_TABLE_NOT_FOUND, "no held result has this id: %s", search.id.text);
  }
  name_list *list = names_snapshot(&s->names);
  const char *name = name_of_hold(list, &search.id);
  hf_status status = name == NULL ? HF_OK : uncache_table(s, name, true, error);
  name_list_release(list);
  scheduler_unpersist(runtime_scheduler(s->runtime), &search.id, HOLD_WAIT_FILES);
  return status;
}

hf_status session_drop_hold(session *s, const char *name_or_id, hf_error *error) {
  HF_TRY(session_enter(s, error));
  return session_leave(s, drop_hold(s, name_or_id, error));
}

/* ------------------------------------------------------------------ REFRESH */

static hf_status refresh_relation(session *s, const relation *r, hf_error *error) {
  arena *a = arena_new();
  if (a == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to refresh a table");
  }
  job_request request = {.session = s->id, .relation = r};
  hf_status status = settings_for_job(s, a, &request.settings, error);
  if (status == HF_OK) {
    status = scheduler_refresh_relation(runtime_scheduler(s->runtime), &request, error);
  }
  if (status == HF_OK) {
    status = durable_flush(s, error);
  }
  arena_free(a);
  return status;
}

hf_status refresh_table(session *s, const char *name, hf_error *error) {
  name_list *list = names_snapshot(&s->names);
  const name_entry *present = name_list_find(list, name);
  hf_status status = present == NULL
                         ? name_list_missing(list, "no view or cached table has this name", name, error)
                         : refresh_relation(s, present->bound, error);
  name_list_release(list);
  return status;
}

hf_status refresh_path(session *s, const char *path, hf_error *error) {
  if (path[0] == '\0') {
    return error_set(error, HF_E_INVALID_ARGUMENT, "the path to refresh is empty");
  }
  const char *mark = strpbrk(path, "*?[");
  size_t length = mark == NULL ? strlen(path) : (size_t)(mark - path);
  while (mark != NULL && length > 0 && path[length - 1] != '/') {
    length--; /* the directory in front of the first part with a mark */
  }
  char *fixed = mem_strndup(length == 0 ? "." : path, length == 0 ? 1 : length);
  if (fixed == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to refresh a path");
  }
  hold_note_changed(s, &s->id, fixed, "refresh");
  mem_free(fixed);
  return durable_flush(s, error);
}
