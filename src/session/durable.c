/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session of a state directory: what of it is written when, how a start goes
 * on with it, and what no name leads to any more. A session without a journal is
 * not concerned: every function does nothing for it.
 *
 * A command that changes a name or a setting writes the state that it leaves
 * behind, and answers when that is in the journal. CACHE TABLE writes its name
 * when the fill is done: a start after a kill finds all of it or nothing.
 * Holds and client data themselves: scheduler/durable.c, client_data.c.
 * Thread: any. record_lock keeps records of names in the order of the names' changes.
 */
#include "session/session_internal.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define uthash_malloc(bytes) mem_alloc(bytes)
#define uthash_free(block, bytes) mem_free(block)
#define HASH_NONFATAL_OOM 1 /* a failed add leaves hh.tbl NULL */
#include <uthash.h>
#include <utlist.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for what the state directory keeps");
}

hf_status durable_flush(session *s, hf_error *error) {
  return s->journal == NULL ? HF_OK : journal_flush(s->journal, error);
}

/* ----------------------------------------------------------------- writing */

static hf_status put_name(session *s, const name_entry *entry, hf_error *error) {
  buf bound = {0}, plain = {0};
  hf_error why = {0};
  hf_status status = relation_pack(entry->bound, &bound, &why);
  if (status == HF_OK && entry->plain != NULL) {
    status = relation_pack(entry->plain, &plain, &why);
  }
  if (status == HF_E_UNSUPPORTED) {
    log_event(LOG_WARN, "session", "name=\"%s\" kept=false message=\"%s\"", entry->name, why.message);
    hf_error_reset(&why);
  } else if (status != HF_OK) {
    error_move(error, &why);
  }
  if (status == HF_OK) {
    journal_name row = {.session = s->id,
                        .name = entry->name,
                        .bound = bound.data,
                        .bound_bytes = bound.length,
                        .plain = entry->plain == NULL ? NULL : plain.data,
                        .plain_bytes = plain.length,
                        .cache_made = entry->cache_made};
    journal_put_name(s->journal, &row);
  }
  buf_reset(&bound);
  buf_reset(&plain);
  return status;
}

/* A relation of a kind that cannot be written is a name for as long as the session is open. */
hf_status durable_name(session *s, const char *name, hf_error *error) {
  if (s->journal == NULL) {
    return HF_OK;
  }
  hf_status status = HF_OK;
  pthread_mutex_lock(&s->record_lock);
  name_list *list = names_snapshot(&s->names);
  const name_entry *entry = name_list_find(list, name);
  if (entry != NULL) {
    status = put_name(s, entry, error);
  }
  if (entry == NULL || status == HF_E_UNSUPPORTED) {
    journal_remove_name(s->journal, &s->id, name);
    status = HF_OK;
  }
  name_list_release(list);
  pthread_mutex_unlock(&s->record_lock);
  return status == HF_OK ? journal_flush(s->journal, error) : status;
}

void name_undo(session *s, const name_entry *entry, const name_entry *before) {
  bool done = false;
  names_exchange(&s->names, entry->name, entry->bound, before, &done, NULL);
  durable_name(s, entry->name, NULL); /* behind the write that failed, which stays to be tried again */
}

/* Copies what SET has changed. */
static bool copy_settings(session *s, arena *a, journal_session *out) {
  hf_setting *rows = arena_array(a, CONFIG_COUNT, sizeof *rows);
  bool is_complete = rows != NULL;
  pthread_mutex_lock(&s->lock);
  for (int key = 0; is_complete && key < CONFIG_COUNT; key++) {
    if (!s->is_set[key]) {
      continue;
    }
    hf_setting *row = &rows[out->n_settings++];
    row->key = config_row_of((config_key)key)->key;
    row->value = arena_strdup(a, config_text(s->settings, (config_key)key));
    is_complete = row->value != NULL;
  }
  pthread_mutex_unlock(&s->lock);
  out->settings = rows;
  return is_complete;
}

hf_status durable_settings(session *s, hf_error *error) {
  if (s->journal == NULL) {
    return HF_OK;
  }
  arena *a = arena_new();
  journal_session row = {.id = s->id};
  pthread_mutex_lock(&s->record_lock);
  bool is_complete = a != NULL && copy_settings(s, a, &row);
  if (is_complete) {
    journal_put_session(s->journal, &row);
  }
  pthread_mutex_unlock(&s->record_lock);
  arena_free(a);
  return is_complete ? journal_flush(s->journal, error) : no_memory(error);
}

void durable_data(session *s, const relation *local, uint64_t number) {
  relation_view view = relation_look(local);
  if (s->journal != NULL) {
    journal_data row = {.session = s->id,
                        .id = view.local_id,
                        .number = number,
                        .rows = view.local_rows,
                        .columns = *view.local_columns};
    journal_put_data(s->journal, &row); /* whatever names it is written later */
  }
}

/* ----------------------------------------------------------------- reading */

typedef struct saved_data {
  struct saved_data *next;
  uuid id;
  uint64_t number;
  relation *local;
} saved_data;

typedef struct saved_name {
  struct saved_name *next;
  journal_name row;
  name_entry entry; /* bound NULL: it could not be read */
} saved_name;

/* A start on its way. */
typedef struct starting {
  session *session;
  const hf_setting *given; /* to hf_session_open: what was saved does not override it */
  size_t n_given;
  arena *memory;
  saved_data *data;
  saved_name *names, *last_name;
  size_t n_names;
} starting;

static bool is_given(const starting *start, const char *key) {
  for (size_t i = 0; i < start->n_given; i++) {
    if (start->given[i].key != NULL && strcasecmp(start->given[i].key, key) == 0) {
      return true;
    }
  }
  return false;
}

static hf_status take_session(void *context, const journal_session *row, hf_error *error) {
  starting *start = context;
  session *s = start->session;
  (void)error;
  for (size_t i = 0; uuid_equal(&row->id, &s->id) && i < row->n_settings; i++) {
    config_key key;
    const hf_setting *saved = &row->settings[i];
    if (is_given(start, saved->key)) {
      continue;
    }
    if (config_find(saved->key, &key, NULL) != HF_OK ||
        config_set(s->settings, key, saved->value, NULL) != HF_OK) {
      log_event(LOG_WARN, "session", "saved_setting=%s ignored=true", saved->key);
      continue;
    }
    s->is_set[key] = true;
  }
  return HF_OK;
}

static hf_status take_data(void *context, const journal_data *row, hf_error *error) {
  starting *start = context;
  session *s = start->session;
  if (!uuid_equal(&row->session, &s->id)) {
    return HF_OK;
  }
  saved_data *data = arena_alloc(start->memory, sizeof *data);
  const char *dir = data == NULL ? NULL : client_data_dir(s, row->number, start->memory);
  const char *blocks = dir == NULL ? NULL : arena_printf(start->memory, "%s/1/1-1", dir);
  if (blocks == NULL) {
    return no_memory(error);
  }
  HF_TRY(relation_from_local(&row->id, blocks, &row->columns, row->rows, &data->local, error));
  data->id = row->id;
  data->number = row->number;
  LL_PREPEND(start->data, data);
  client_data_note(s, row->number);
  return HF_OK;
}

static const void *copy_bytes(arena *a, const void *bytes, size_t length) {
  return bytes == NULL ? NULL : arena_strndup(a, bytes, length);
}

static hf_status take_name(void *context, const journal_name *row, hf_error *error) {
  starting *start = context;
  arena *a = start->memory;
  if (!uuid_equal(&row->session, &start->session->id)) {
    return HF_OK;
  }
  saved_name *name = arena_alloc(a, sizeof *name);
  if (name == NULL) {
    return no_memory(error);
  }
  name->row = *row;
  name->row.name = arena_strdup(a, row->name);
  name->row.bound = copy_bytes(a, row->bound, row->bound_bytes);
  name->row.plain = copy_bytes(a, row->plain, row->plain_bytes);
  if (name->row.name == NULL || name->row.bound == NULL || (row->plain != NULL && name->row.plain == NULL)) {
    return no_memory(error);
  }
  *(start->last_name == NULL ? &start->names : &start->last_name->next) = name;
  start->last_name = name;
  start->n_names++;
  return HF_OK;
}

static const relation *no_name(void *context, const char *name) {
  (void)context;
  (void)name;
  return NULL; /* a packed relation carries what its text names */
}

static const char *no_name_at(void *context, size_t i) {
  (void)context;
  (void)i;
  return NULL;
}

static const relation *find_data(void *context, const uuid *id) {
  const starting *start = context;
  for (const saved_data *data = start->data; data != NULL; data = data->next) {
    if (uuid_equal(&data->id, id)) {
      return data->local;
    }
  }
  return NULL;
}

static hf_status unpack_name(starting *start, saved_name *name, engine *planner, hf_error *error) {
  const journal_name *row = &name->row;
  relation_names known = {.lookup = no_name, .name_at = no_name_at, .context = start, .local = find_data};
  relation *bound = NULL, *plain = NULL;
  HF_TRY(relation_unpack(row->bound, row->bound_bytes, planner, &known, &bound, error));
  hf_status status = row->plain == NULL
                         ? HF_OK
                         : relation_unpack(row->plain, row->plain_bytes, planner, &known, &plain, error);
  if (status != HF_OK) {
    relation_release(bound);
    return status;
  }
  name->entry =
      (name_entry){.name = row->name, .bound = bound, .plain = plain, .cache_made = row->cache_made};
  return HF_OK;
}

/* A name that cannot be read stays in the journal, and nothing that it may lead to goes. */
static hf_status unpack_names(void *context, engine *planner, hf_error *error) {
  starting *start = context;
  for (saved_name *name = start->names; name != NULL; name = name->next) {
    hf_error why = {0};
    hf_status status = unpack_name(start, name, planner, &why);
    if (status == HF_E_OUT_OF_MEMORY) {
      error_move(error, &why);
      return status;
    }
    if (status != HF_OK) {
      log_event(LOG_ERROR, "session", "saved_name=\"%s\" lost=true message=\"%s\"", name->row.name,
                why.message == NULL ? "" : why.message);
      start->session->has_unread_names = true;
    }
    hf_error_reset(&why);
  }
  return HF_OK;
}

static hf_status fill_names(starting *start, hf_error *error) {
  name_entry *entries = arena_array(start->memory, start->n_names, sizeof *entries);
  size_t n = 0;
  if (entries == NULL) {
    return no_memory(error);
  }
  for (const saved_name *name = start->names; name != NULL; name = name->next) {
    if (name->entry.bound != NULL) {
      entries[n++] = name->entry;
    }
  }
  return names_fill(&start->session->names, entries, n, error);
}

static void release_all(starting *start) {
  for (const saved_data *data = start->data; data != NULL; data = data->next) {
    relation_release(data->local);
  }
  for (const saved_name *name = start->names; name != NULL; name = name->next) {
    relation_release(name->entry.bound);
    relation_release(name->entry.plain);
  }
}

hf_status durable_start(session *s, const hf_setting *given, size_t n_given, hf_error *error) {
  if (s->journal == NULL) {
    return HF_OK;
  }
  starting start = {.session = s, .given = given, .n_given = n_given, .memory = arena_new()};
  if (start.memory == NULL) {
    return no_memory(error);
  }
  journal_reader reader = {.context = &start, .session = take_session, .data = take_data, .name = take_name};
  hf_status status = journal_load(s->journal, &reader, error);
  if (status == HF_OK && start.names != NULL) {
    status = session_with_planner(s, unpack_names, &start, error);
  }
  if (status == HF_OK) {
    status = fill_names(&start, error);
  }
  release_all(&start);
  arena_free(start.memory);
  if (status == HF_OK) {
    durable_trim(s);
  }
  return status;
}

/* ---------------------------------------------------------------- trimming */

/* A relation that was looked at, or an id that one named. */
typedef struct reached {
  union {
    const relation *relation;
    char id[sizeof(uuid)];
  } key;
  UT_hash_handle hh;
} reached;

typedef struct reach {
  reached *relations, *data;
  uuid *holds;
  size_t n_holds, capacity;
  bool failed; /* no memory: nothing is to go */
} reach;

static bool is_new_relation(reach *r, const relation *at) {
  reached *found = NULL;
  HASH_FIND_PTR(r->relations, &at, found);
  if (found != NULL) {
    return false;
  }
  found = mem_zalloc(1, sizeof *found);
  if (found != NULL) {
    found->key.relation = at;
    HASH_ADD_PTR(r->relations, key.relation, found);
  }
  if (found == NULL || found->hh.tbl == NULL) {
    mem_free(found);
    r->failed = true;
    return false;
  }
  return true;
}

static void reach_hold(reach *r, const uuid *id) {
  if (r->n_holds == r->capacity) {
    size_t capacity = r->capacity * 2 + 8;
    uuid *holds = mem_realloc(r->holds, capacity * sizeof *holds);
    if (holds == NULL) {
      r->failed = true;
      return;
    }
    r->holds = holds;
    r->capacity = capacity;
  }
  r->holds[r->n_holds++] = *id;
}

static void reach_data(reach *r, const uuid *id) {
  reached *found = NULL;
  HASH_FIND_STR(r->data, id->text, found);
  if (found != NULL) {
    return;
  }
  found = mem_zalloc(1, sizeof *found);
  if (found != NULL) {
    memcpy(found->key.id, id->text, sizeof id->text);
    HASH_ADD_STR(r->data, key.id, found);
  }
  if (found == NULL || found->hh.tbl == NULL) {
    mem_free(found);
    r->failed = true;
  }
}

static void reach_from(reach *r, const relation *at);

typedef struct reach_parts {
  reach *reach;
  const relation *input; /* steps are a long chain: reach_from follows it itself */
} reach_parts;

static void reach_part(void *context, const relation *part) {
  const reach_parts *parts = context;
  if (part != parts->input) {
    reach_from(parts->reach, part);
  }
}

static void reach_from(reach *r, const relation *at) {
  while (at != NULL && is_new_relation(r, at)) {
    relation_view view = relation_look(at);
    if (view.kind == RELATION_CACHE) {
      reach_hold(r, &view.cache_id);
    } else if (view.kind == RELATION_LOCAL) {
      reach_data(r, &view.local_id);
    }
    relation_each_part(at, reach_part, &(reach_parts){r, view.input});
    at = view.input;
  }
}

static void reach_free(reach *r) {
  reached *at = NULL, *next = NULL;
  HASH_ITER(hh, r->relations, at, next) {
    HASH_DEL(r->relations, at);
    mem_free(at);
  }
  HASH_ITER(hh, r->data, at, next) {
    HASH_DEL(r->data, at);
    mem_free(at);
  }
  mem_free(r->holds);
}

typedef struct trimming {
  session *session;
  reach *reach;
} trimming;

static hf_status trim_data(void *context, const journal_data *row, hf_error *error) {
  const trimming *t = context;
  reached *found = NULL;
  (void)error;
  HASH_FIND_STR(t->reach->data, row->id.text, found);
  if (found == NULL && uuid_equal(&row->session, &t->session->id)) {
    journal_remove_data(t->session->journal, &row->session, &row->id);
    client_data_delete(t->session, row->number);
  }
  return HF_OK;
}

static int hold_order(const void *a, const void *b) {
  return strcmp(((const uuid *)a)->text, ((const uuid *)b)->text);
}

void durable_trim(session *s) {
  if (s->journal == NULL || s->has_unread_names) {
    return;
  }
  reach r = {0};
  trimming t = {s, &r};
  name_list *list = names_snapshot(&s->names);
  for (size_t i = 0; i < name_list_count(list); i++) {
    reach_from(&r, name_list_at(list, i)->bound);
    reach_from(&r, name_list_at(list, i)->plain);
  }
  name_list_release(list);
  if (!r.failed) {
    journal_reader reader = {.context = &t, .data = trim_data};
    if (r.n_holds > 0) {
      qsort(r.holds, r.n_holds, sizeof *r.holds, hold_order);
    }
    scheduler_keep_only(runtime_scheduler(s->runtime), r.holds, r.n_holds);
    journal_load(s->journal, &reader, NULL);
  }
  reach_free(&r);
}
