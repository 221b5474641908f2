/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite behind the journal: the file's format, its prepared statements, what its
 * errors mean. In WAL mode with synchronous=NORMAL: what was committed outlives
 * the process, and after a power failure the file is whole but may lack the last
 * commits. The one file that knows SQLite.
 * Thread: one at a time.
 */
#include "store.h"

#include "base/buf.h"
#include "base/mem.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum {
  FORMAT_VERSION = 1,          /* raised when old code could not read what new code writes, or the reverse */
  APPLICATION_ID = 0x48664A6E, /* "HfJn": what the file(1) of a stranger sees */
  UUID_LENGTH = 36
};

typedef enum statement_id { PUT, REMOVE, LOAD, BEGIN, COMMIT, ROLLBACK, STATEMENT_COUNT } statement_id;

static const char *const STATEMENTS[STATEMENT_COUNT] = {
    [PUT] = ("INSERT INTO record(kind, owner, key, job, body, checksum) VALUES(?1, ?2, ?3, ?4, ?5, ?6) "
             "ON CONFLICT(kind, owner, key) DO UPDATE SET job = ?4, body = ?5, checksum = ?6"),
    [REMOVE] = "DELETE FROM record WHERE kind = ?1 AND owner = ?2 AND key = ?3 AND (?4 = 0 OR job = ?4)",
    [LOAD] = "SELECT owner, key, job, body, checksum FROM record WHERE kind = ?1 ORDER BY rowid",
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
};

static const char SCHEMA[] =
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE record(kind INTEGER NOT NULL, owner TEXT NOT NULL, key TEXT NOT NULL, job INTEGER NOT NULL,"
    " body BLOB NOT NULL, checksum INTEGER NOT NULL, UNIQUE(kind, owner, key));";

struct store {
  sqlite3 *db;
  sqlite3_stmt *statements[STATEMENT_COUNT];
  uuid id;
  char path[];
};

/* ------------------------------------------------------------------ errors */

static const char DAMAGED_HINT[] =
    "move the state directory away or remove it: held results are computed again, "
    "views and settings must be made again";

static hf_status damaged(const store *s, const char *what, hf_error *error) {
  error_set(error, HF_E_STATE_DIR, "the journal is damaged: %s: %s", what, s->path);
  error_hint(error, DAMAGED_HINT);
  return HF_E_STATE_DIR;
}

static hf_status refuse(const store *s, int code, hf_error *error) {
  const char *cause = s->db == NULL ? sqlite3_errstr(code) : sqlite3_errmsg(s->db);
  hf_status status = HF_E_STATE_DIR;
  switch (code & 0xff) {
    case SQLITE_NOMEM:
      status = error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the journal");
      break;
    case SQLITE_FULL:
      status = error_set(error, HF_E_DISK_FULL, "no space is left for the journal: %s", s->path);
      error_hint(error, "free space, or choose another place with --state-dir");
      break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      status = damaged(s, cause, error);
      break;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      error_set(error, status, "the journal cannot be opened for writing: %s", s->path);
      error_hint(error, "make the state directory writable, or choose another with --state-dir");
      break;
    default:
      error_set(error, status, "the journal cannot be read or written: %s", s->path);
      error_hint(error, "see the cause that SQLite gave, or choose another place with --state-dir");
  }
  error_cause(error, cause);
  return status;
}

/* -------------------------------------------------------------- statements */

static hf_status run_text(store *s, const char *sql, hf_error *error) {
  int code = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
  return code == SQLITE_OK ? HF_OK : refuse(s, code, error);
}

/* Runs a prepared statement that gives no row. */
static hf_status run_prepared(store *s, statement_id id, hf_error *error) {
  sqlite3_stmt *statement = s->statements[id];
  int code = sqlite3_step(statement);
  hf_status status = code == SQLITE_DONE ? HF_OK : refuse(s, code, error);
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  return status;
}

/* The first value of the first row as text; "" when there is none. */
static hf_status ask(store *s, const char *sql, char *out, size_t room, hf_error *error) {
  sqlite3_stmt *statement = NULL;
  out[0] = '\0';
  int code = sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL);
  if (code == SQLITE_OK) {
    code = sqlite3_step(statement);
  }
  if (code == SQLITE_ROW) {
    const unsigned char *text = sqlite3_column_text(statement, 0);
    snprintf(out, room, "%s", text == NULL ? "" : (const char *)text);
  }
  hf_status status = code == SQLITE_ROW || code == SQLITE_DONE ? HF_OK : refuse(s, code, error);
  sqlite3_finalize(statement);
  return status;
}

/* ----------------------------------------------------------------- opening */

static hf_status make_schema(store *s, hf_error *error) {
  uuid id = uuid_new();
  buf sql = {0};
  buf_printf(&sql,
             "BEGIN IMMEDIATE;%sINSERT INTO meta VALUES('id', '%s');"
             "PRAGMA application_id=%d;PRAGMA user_version=%d;COMMIT",
             SCHEMA, id.text, APPLICATION_ID, FORMAT_VERSION);
  hf_status status = sql.failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the journal")
                                : run_text(s, buf_cstr(&sql), error);
  buf_reset(&sql);
  return status;
}

static hf_status check_version(store *s, bool *is_new, hf_error *error) {
  char application[24], version[24], tables[24], ours[24];
  HF_TRY(ask(s, "PRAGMA application_id", application, sizeof application, error));
  HF_TRY(ask(s, "PRAGMA user_version", version, sizeof version, error));
  HF_TRY(ask(s, "SELECT count(*) FROM sqlite_schema", tables, sizeof tables, error));
  *is_new = strcmp(application, "0") == 0 && strcmp(version, "0") == 0 && strcmp(tables, "0") == 0;
  if (*is_new) {
    return HF_OK;
  }
  snprintf(ours, sizeof ours, "%d", APPLICATION_ID);
  if (strcmp(application, ours) != 0) {
    return damaged(s, "it is a database of another program", error);
  }
  snprintf(ours, sizeof ours, "%d", FORMAT_VERSION);
  if (strcmp(version, ours) != 0) {
    error_set(error, HF_E_STATE_DIR, "the journal has format version %s, this Holdfast reads %s: %s", version,
              ours, s->path);
    error_hint(error,
               "open it with the Holdfast that wrote it, or choose another directory with --state-dir");
    return HF_E_STATE_DIR;
  }
  return HF_OK;
}

static hf_status check_whole(store *s, hf_error *error) {
  char answer[200];
  HF_TRY(ask(s, "PRAGMA quick_check(1)", answer, sizeof answer, error));
  return strcmp(answer, "ok") == 0 ? HF_OK : damaged(s, answer, error);
}

static hf_status read_id(store *s, hf_error *error) {
  char text[UUID_LENGTH + 2];
  HF_TRY(ask(s, "SELECT value FROM meta WHERE name = 'id'", text, sizeof text, error));
  return uuid_parse(text, &s->id) ? HF_OK : damaged(s, "it has no id", error);
}

static hf_status open_steps(store *s, hf_error *error) {
  int code = sqlite3_open_v2(s->path, &s->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
  if (code != SQLITE_OK) {
    return refuse(s, code, error);
  }
  sqlite3_extended_result_codes(s->db, 1);
  sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, (int)STORE_LARGEST_BODY_BYTES + 4096);
  bool is_new = false;
  /* The lock of the directory keeps others out: without a lock of its own SQLite needs no shared memory. */
  HF_TRY(run_text(s, "PRAGMA locking_mode=EXCLUSIVE;PRAGMA trusted_schema=OFF;PRAGMA cell_size_check=ON",
                  error));
  HF_TRY(check_version(s, &is_new, error));
  HF_TRY(run_text(s, "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA temp_store=MEMORY", error));
  HF_TRY(is_new ? make_schema(s, error) : check_whole(s, error));
  HF_TRY(read_id(s, error));
  for (int i = 0; i < STATEMENT_COUNT; i++) {
    code = sqlite3_prepare_v3(s->db, STATEMENTS[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statements[i], NULL);
    if (code != SQLITE_OK) {
      return refuse(s, code, error);
    }
  }
  return HF_OK;
}

hf_status store_open(const char *path, store **out, hf_error *error) {
  size_t length = strlen(path) + 1;
  store *s = mem_zalloc(1, sizeof *s + length);
  if (s == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the journal");
  }
  memcpy(s->path, path, length);
  hf_status status = open_steps(s, error);
  if (status != HF_OK) {
    store_close(s);
    return status;
  }
  *out = s;
  return HF_OK;
}

void store_close(store *s) {
  if (s == NULL) {
    return;
  }
  for (int i = 0; i < STATEMENT_COUNT; i++) {
    sqlite3_finalize(s->statements[i]);
  }
  sqlite3_close(s->db);
  mem_free(s);
}

const uuid *store_id(const store *s) {
  return &s->id;
}

/* -------------------------------------------------------------------- rows */

/* Of all that a row says, so that a row cannot be taken for another. */
static uint64_t checksum_of(const store_row *row) {
  uint64_t sum = XXH3_64bits_withSeed(row->owner, strlen(row->owner), (uint64_t)row->kind);
  sum = XXH3_64bits_withSeed(row->key, strlen(row->key), sum);
  sum = XXH3_64bits_withSeed(&row->job, sizeof row->job, sum);
  return XXH3_64bits_withSeed(row->body, row->body_bytes, sum);
}

hf_status store_begin(store *s, hf_error *error) {
  return run_prepared(s, BEGIN, error);
}

hf_status store_commit(store *s, hf_error *error) {
  return run_prepared(s, COMMIT, error);
}

void store_rollback(store *s) {
  if (sqlite3_get_autocommit(s->db) == 0) {
    run_prepared(s, ROLLBACK, NULL);
  }
}

static void bind_key(sqlite3_stmt *statement, const store_row *row) {
  sqlite3_bind_int(statement, 1, (int)row->kind);
  sqlite3_bind_text(statement, 2, row->owner, -1, SQLITE_STATIC);
  sqlite3_bind_text(statement, 3, row->key, -1, SQLITE_STATIC);
  sqlite3_bind_int64(statement, 4, (sqlite3_int64)row->job);
}

hf_status store_put(store *s, const store_row *row, hf_error *error) {
  sqlite3_stmt *statement = s->statements[PUT];
  bind_key(statement, row);
  sqlite3_bind_blob64(statement, 5, row->body_bytes == 0 ? "" : row->body, row->body_bytes, SQLITE_STATIC);
  sqlite3_bind_int64(statement, 6, (sqlite3_int64)checksum_of(row));
  return run_prepared(s, PUT, error);
}

hf_status store_remove(store *s, const store_row *row, hf_error *error) {
  bind_key(s->statements[REMOVE], row);
  return run_prepared(s, REMOVE, error);
}

static hf_status read_row(store *s, sqlite3_stmt *statement, store_row *row, hf_error *error) {
  row->owner = (const char *)sqlite3_column_text(statement, 0);
  row->key = (const char *)sqlite3_column_text(statement, 1);
  row->job = (uint64_t)sqlite3_column_int64(statement, 2);
  row->body = sqlite3_column_blob(statement, 3);
  row->body_bytes = (size_t)sqlite3_column_bytes(statement, 3);
  if (row->owner == NULL || row->key == NULL) {
    return damaged(s, "a record lacks its key", error);
  }
  if (row->body == NULL) {
    row->body = "";
  }
  if ((uint64_t)sqlite3_column_int64(statement, 4) != checksum_of(row)) {
    return damaged(s, "a record does not match its checksum", error);
  }
  return HF_OK;
}

hf_status store_load(store *s, store_kind kind,
                     hf_status (*each)(void *context, const store_row *row, hf_error *error), void *context,
                     hf_error *error) {
  sqlite3_stmt *statement = s->statements[LOAD];
  sqlite3_bind_int(statement, 1, (int)kind);
  hf_status status = HF_OK;
  int code = SQLITE_ROW;
  while (status == HF_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
    store_row row = {.kind = kind};
    status = read_row(s, statement, &row, error);
    if (status == HF_OK) {
      status = each(context, &row, error);
    }
  }
  if (status == HF_OK && code != SQLITE_DONE) {
    status = refuse(s, code, error);
  }
  sqlite3_reset(statement);
  return status;
}
