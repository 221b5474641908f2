/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: a queue of writes and the thread that does them, several in one
 * transaction when they come faster than the file takes them.
 *
 * J1  Writes are done in the order in which they were put; what is told as written
 *     was committed with all before it.
 * J2  A write that failed stays, and is tried again before the next: what was put
 *     later never gets ahead of it.
 * J3  SQLite is touched by the journal's thread alone, once it runs.
 *
 * The file: store.c. Bodies of its rows: record_*.c. The directory: place.c.
 * Threads: door functions any; the rest the journal's.
 */
#include "journal/journal.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "place.h"
#include "record.h"

#include <stdatomic.h>
#include <string.h>
#include <utlist.h>

enum {
  BATCH_MOST = 1000,    /* writes in a transaction: bounds how long a caller waits for others' */
  TAKE_WITHOUT_WAIT = 1 /* a deadline that has passed */
};

typedef enum write_kind { WRITE_PUT, WRITE_REMOVE, WRITE_CALL } write_kind;

/* A write on its way; owner, key and body lie behind it. */
typedef struct journal_write {
  queue_item item;
  struct journal_write *next;
  write_kind kind;
  store_row row;
  void (*written)(void *of, hf_status status);
  void *of;
} journal_write;

/* Something to do on the journal's thread while the sender waits. */
typedef struct journal_call {
  journal_write base;
  hf_status (*run)(journal *j, struct journal_call *call, hf_error *error);
  const void *of; /* for `run` */
  void *to;
  hf_status (*each)(void *to, const hold_record *record, hf_error *error);
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool done; /* guarded by lock */
  hf_status status;
  hf_error error;
} journal_call;

struct journal {
  place place;
  store *store;
  hold_journal holds;
  event_queue queue;
  pthread_t thread;
  journal_write *pending; /* of the thread: not written yet, oldest first */
  hf_status failed;       /* of the thread: of the last write; HF_OK: nothing is pending */
  hf_error failure;
  atomic_bool has_lost; /* something could not even be queued since the last flush */
};

/* ------------------------------------------------------------------ writing */

static void write_free(journal_write *w) {
  mem_free(w);
}

static hf_status write_one(journal *j, const journal_write *w, hf_error *error) {
  return w->kind == WRITE_PUT ? store_put(j->store, &w->row, error) : store_remove(j->store, &w->row, error);
}

static hf_status write_transaction(journal *j, hf_error *error) {
  HF_TRY(store_begin(j->store, error));
  hf_status status = HF_OK;
  const journal_write *w = NULL;
  LL_FOREACH(j->pending, w) {
    status = status == HF_OK ? write_one(j, w, error) : status;
  }
  fault_point("journal.before_commit");
  if (status == HF_OK) {
    status = store_commit(j->store, error);
  }
  if (status != HF_OK) {
    store_rollback(j->store);
  }
  fault_point("journal.after_commit");
  return status;
}

static void tell(journal_write *w, hf_status status) {
  void (*written)(void *of, hf_status status) = w->written;
  w->written = NULL;
  if (written != NULL) {
    written(w->of, status);
  }
}

/* Writes all that is pending (J1, J2). */
static void write_pending(journal *j) {
  if (j->pending == NULL) {
    return;
  }
  hf_error_reset(&j->failure);
  j->failed = write_transaction(j, &j->failure);
  if (j->failed != HF_OK) {
    log_event(LOG_WARN, "journal", "write=failed code=%d message=\"%s\"", j->failed,
              j->failure.message == NULL ? "" : j->failure.message);
  }
  journal_write *w = NULL, *next = NULL;
  LL_FOREACH_SAFE(j->pending, w, next) {
    tell(w, j->failed);
    if (j->failed == HF_OK) {
      LL_DELETE(j->pending, w);
      write_free(w);
    }
  }
}

static void call_answer(journal *j, journal_call *call) {
  hf_status status = call->run(j, call, &call->error);
  pthread_mutex_lock(&call->lock);
  call->status = status;
  call->done = true;
  pthread_cond_signal(&call->changed);
  pthread_mutex_unlock(&call->lock);
}

static void *journal_main(void *context) {
  journal *j = context;
  journal_write *w = NULL;
  while ((w = (journal_write *)event_queue_take(&j->queue, 0)) != NULL) {
    journal_write *last = j->pending;
    while (last != NULL && last->next != NULL) {
      last = last->next;
    }
    for (int n = 0; w != NULL && w->kind != WRITE_CALL; n++) {
      w->next = NULL;
      *(last == NULL ? &j->pending : &last->next) = w;
      last = w;
      w = n < BATCH_MOST ? (journal_write *)event_queue_take(&j->queue, TAKE_WITHOUT_WAIT) : NULL;
    }
    write_pending(j);
    if (w != NULL) {
      call_answer(j, (journal_call *)w);
    }
  }
  write_pending(j);
  return NULL;
}

/* ------------------------------------------------------------------ putting */

typedef struct write_options {
  write_kind kind;
  store_kind of;
  const char *owner, *key;
  uint64_t job;
  void (*written)(void *of, hf_status status);
  void *told;
} write_options;

/* Queues a copy. False: no memory, or the journal closes. */
static bool post(journal *j, const write_options *o, const void *body, size_t body_bytes) {
  size_t owner_bytes = strlen(o->owner) + 1, key_bytes = strlen(o->key) + 1;
  journal_write *w = mem_zalloc(1, sizeof *w + owner_bytes + key_bytes + body_bytes);
  if (w == NULL) {
    return false;
  }
  char *at = (char *)(w + 1);
  memcpy(at, o->owner, owner_bytes);
  memcpy(at + owner_bytes, o->key, key_bytes);
  if (body_bytes > 0) {
    memcpy(at + owner_bytes + key_bytes, body, body_bytes);
  }
  w->kind = o->kind;
  w->row = (store_row){.kind = o->of,
                       .owner = at,
                       .key = at + owner_bytes,
                       .job = o->job,
                       .body = at + owner_bytes + key_bytes,
                       .body_bytes = body_bytes};
  w->written = o->written;
  w->of = o->told;
  if (!event_queue_post(&j->queue, &w->item)) {
    write_free(w);
    return false;
  }
  return true;
}

/* Queues what was packed, and lets the body go; what cannot be queued is told here, and by the next flush. */
static void put_packed(journal *j, write_options *o, hf_status status, buf *body, hf_error *error) {
  o->kind = WRITE_PUT;
  if (status == HF_OK && !post(j, o, body->data, body->length)) {
    status = error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a record of the journal");
  }
  if (status != HF_OK) {
    atomic_store(&j->has_lost, true);
    log_event(LOG_WARN, "journal", "put=failed kind=%d key=%s message=\"%s\"", (int)o->of, o->key,
              error->message == NULL ? "" : error->message);
    if (o->written != NULL) {
      o->written(o->told, status);
    }
  }
  hf_error_reset(error);
  buf_reset(body);
}

static void remove_row(journal *j, write_options *o) {
  o->kind = WRITE_REMOVE;
  if (!post(j, o, NULL, 0)) {
    atomic_store(&j->has_lost, true);
    log_event(LOG_WARN, "journal", "remove=failed kind=%d key=%s", (int)o->of, o->key);
  }
}

/* Runs on the journal's thread, after all that was put before. */
static hf_status call_run(journal *j, journal_call *call, hf_error *error) {
  call->base.kind = WRITE_CALL;
  pthread_mutex_init(&call->lock, NULL);
  cond_init(&call->changed);
  if (!event_queue_post(&j->queue, &call->base.item)) {
    call->status = error_set(&call->error, HF_E_STATE_DIR, "the journal is closed");
    call->done = true;
  }
  pthread_mutex_lock(&call->lock);
  while (!call->done) {
    cond_wait_until(&call->changed, &call->lock, 0);
  }
  pthread_mutex_unlock(&call->lock);
  pthread_cond_destroy(&call->changed);
  pthread_mutex_destroy(&call->lock);
  if (call->status != HF_OK) {
    error_move(error, &call->error);
  }
  hf_error_reset(&call->error);
  return call->status;
}

/* ------------------------------------------------------------ hold_journal */

static void holds_put(void *context, const hold_record *record, void (*written)(void *of, hf_status status),
                      void *of) {
  bool is_entry = record->kind == RECORD_ENTRY;
  write_options o = {.of = is_entry ? STORE_ENTRY : STORE_DECLARATION,
                     .owner = "",
                     .key = is_entry ? record->entry.key.text : record->declaration.key.text,
                     .job = is_entry ? record->entry.job.value : 0,
                     .written = written,
                     .told = of};
  hf_error error = {0};
  buf body = {0};
  hf_status status = is_entry ? record_pack_entry(&record->entry, &body, &error)
                              : record_pack_declaration(&record->declaration, &body, &error);
  put_packed(context, &o, status, &body, &error);
}

static void holds_remove(void *context, hold_record_kind kind, const uuid *key, job_id job) {
  write_options o = {.of = kind == RECORD_ENTRY ? STORE_ENTRY : STORE_DECLARATION,
                     .owner = "",
                     .key = key->text,
                     .job = kind == RECORD_ENTRY ? job.value : 0};
  remove_row(context, &o);
}

static hf_status load_hold(void *context, const store_row *row, hf_error *error) {
  const journal_call *call = context;
  arena *a = arena_new();
  if (a == NULL) {
    return record_no_memory(error);
  }
  hold_record record = {.kind = row->kind == STORE_ENTRY ? RECORD_ENTRY : RECORD_DECLARATION};
  hf_status status = row->kind == STORE_ENTRY ? record_unpack_entry(row, a, &record.entry, error)
                                              : record_unpack_declaration(row, a, &record.declaration, error);
  if (status == HF_OK) {
    status = call->each(call->to, &record, error);
  }
  arena_free(a);
  return status;
}

static hf_status load_holds(journal *j, journal_call *call, hf_error *error) {
  HF_TRY(store_load(j->store, STORE_DECLARATION, load_hold, call, error));
  return store_load(j->store, STORE_ENTRY, load_hold, call, error);
}

static hf_status holds_load(void *context,
                            hf_status (*each)(void *to, const hold_record *record, hf_error *error), void *to,
                            hf_error *error) {
  journal_call call = {.run = load_holds, .each = each, .to = to};
  return call_run(context, &call, error);
}

const hold_journal *journal_holds(const journal *j) {
  return &j->holds;
}

/* ----------------------------------------------------------------- sessions */

void journal_put_session(journal *j, const journal_session *row) {
  write_options o = {.of = STORE_SESSION, .owner = "", .key = row->id.text};
  hf_error error = {0};
  buf body = {0};
  put_packed(j, &o, record_pack_session(row, &body, &error), &body, &error);
}

/* Names are found without regard to the case of ASCII letters. */
static void fold(const char *name, buf *out) {
  for (const char *at = name; *at != '\0'; at++) {
    buf_char(out, *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at);
  }
}

void journal_put_name(journal *j, const journal_name *row) {
  hf_error error = {0};
  buf body = {0}, key = {0};
  fold(row->name, &key);
  hf_status status = key.failed ? record_no_memory(&error) : record_pack_name(row, &body, &error);
  write_options o = {.of = STORE_NAME, .owner = row->session.text, .key = buf_cstr(&key)};
  put_packed(j, &o, status, &body, &error);
  buf_reset(&key);
}

void journal_remove_name(journal *j, const uuid *session, const char *name) {
  buf key = {0};
  fold(name, &key);
  write_options o = {.of = STORE_NAME, .owner = session->text, .key = buf_cstr(&key)};
  remove_row(j, &o);
  buf_reset(&key);
}

void journal_put_data(journal *j, const journal_data *row) {
  write_options o = {.of = STORE_DATA, .owner = row->session.text, .key = row->id.text};
  hf_error error = {0};
  buf body = {0};
  put_packed(j, &o, record_pack_data(row, &body, &error), &body, &error);
}

void journal_remove_data(journal *j, const uuid *session, const uuid *id) {
  write_options o = {.of = STORE_DATA, .owner = session->text, .key = id->text};
  remove_row(j, &o);
}

static hf_status tell_failure(journal *j, journal_call *call, hf_error *error) {
  (void)call;
  if (atomic_exchange(&j->has_lost, false)) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a record of the journal, or it is too large");
  }
  if (j->failed != HF_OK) {
    error_copy(error, &j->failure);
  }
  return j->failed;
}

hf_status journal_flush(journal *j, hf_error *error) {
  journal_call call = {.run = tell_failure};
  return call_run(j, &call, error);
}

static hf_status load_row(void *context, const store_row *row, hf_error *error) {
  const journal_reader *reader = context;
  arena *a = arena_new();
  if (a == NULL) {
    return record_no_memory(error);
  }
  journal_session session;
  journal_data data;
  journal_name name;
  hf_status status = HF_OK;
  if (row->kind == STORE_SESSION && reader->session != NULL) {
    status = record_unpack_session(row, a, &session, error);
    status = status == HF_OK ? reader->session(reader->context, &session, error) : status;
  } else if (row->kind == STORE_DATA && reader->data != NULL) {
    status = record_unpack_data(row, a, &data, error);
    status = status == HF_OK ? reader->data(reader->context, &data, error) : status;
  } else if (row->kind == STORE_NAME && reader->name != NULL) {
    status = record_unpack_name(row, a, &name, error);
    status = status == HF_OK ? reader->name(reader->context, &name, error) : status;
  }
  arena_free(a);
  return status;
}

static hf_status load_sessions(journal *j, journal_call *call, hf_error *error) {
  static const store_kind kinds[] = {STORE_SESSION, STORE_DATA, STORE_NAME};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    HF_TRY(store_load(j->store, kinds[i], load_row, (void *)call->of, error));
  }
  return HF_OK;
}

hf_status journal_load(journal *j, const journal_reader *reader, hf_error *error) {
  journal_call call = {.run = load_sessions, .of = reader};
  return call_run(j, &call, error);
}

/* ----------------------------------------------------------- open and close */

static hf_status open_steps(journal *j, const char *dir, hf_error *error) {
  HF_TRY(place_open(dir, &j->place, error));
  buf path = {0};
  buf_printf(&path, "%s/%s", j->place.dir, PLACE_JOURNAL_NAME);
  hf_status status = path.failed ? record_no_memory(error) : store_open(buf_cstr(&path), &j->store, error);
  buf_reset(&path);
  return status;
}

static void journal_free(journal *j) {
  store_close(j->store);
  place_close(&j->place);
  event_queue_destroy(&j->queue);
  hf_error_reset(&j->failure);
  while (j->pending != NULL) {
    journal_write *w = j->pending;
    j->pending = w->next;
    write_free(w);
  }
  mem_free(j);
}

hf_status journal_open(const char *dir, journal **out, hf_error *error) {
  journal *j = mem_zalloc(1, sizeof *j);
  if (j == NULL) {
    return record_no_memory(error);
  }
  j->holds = (hold_journal){.context = j, .put = holds_put, .remove = holds_remove, .load = holds_load};
  event_queue_init(&j->queue);
  hf_status status = open_steps(j, dir, error);
  if (status == HF_OK) {
    status = thread_start(&j->thread, 0, journal_main, j, "hf-journal", error);
  }
  if (status != HF_OK) {
    journal_free(j);
    return status;
  }
  *out = j;
  return HF_OK;
}

bool journal_is_there(const char *dir) {
  return place_has_journal(dir);
}

void journal_close(journal *j) {
  if (j == NULL) {
    return;
  }
  event_queue_close(&j->queue);
  pthread_join(j->thread, NULL);
  journal_free(j);
}

const char *journal_dir(const journal *j) {
  return j->place.dir;
}

const uuid *journal_id(const journal *j) {
  return store_id(j->store);
}
