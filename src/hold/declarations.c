/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations: what users asked to hold. They change by user commands only and
 * exist before the first action and after loss. What exists is the registry's.
 * Thread: the scheduler's.
 */
#include "hold/hold.h"

#include "hold/registry_internal.h"

#include <stdio.h>
#include <string.h>

/* What a hold by content is found by; compared as bytes. */
typedef struct content_key {
  uuid session;
  char fingerprint[33];
} content_key;

typedef struct declared_row {
  declaration row;
  arena *memory;
  content_key content;
  UT_hash_handle hh;         /* by row.key.text; iteration is in the order of adding */
  UT_hash_handle by_content; /* by content; tbl NULL: not listed there */
} declared_row;

struct declarations {
  declared_row *rows;
  declared_row *contents; /* of those by content that are not released; one for a content */
};

declarations *declarations_new(void) {
  return mem_zalloc(1, sizeof(declarations));
}

static void row_free(declared_row *row) {
  if (row != NULL) {
    arena_free(row->memory);
    mem_free(row);
  }
}

void declarations_free(declarations *d) {
  if (d == NULL) {
    return;
  }
  declared_row *row = NULL, *next = NULL;
  HASH_CLEAR(by_content, d->contents);
  HASH_ITER(hh, d->rows, row, next) {
    HASH_DEL(d->rows, row);
    row_free(row);
  }
  mem_free(d);
}

static declared_row *row_find(const declarations *d, const uuid *key) {
  declared_row *row = NULL;
  HASH_FIND_STR(d->rows, key->text, row);
  return row;
}

static hf_status row_copy(const declaration *from, declared_row **out, hf_error *error) {
  declared_row *row = mem_zalloc(1, sizeof *row);
  if (row == NULL || (row->memory = arena_new_sized(ENTRY_ARENA_BYTES)) == NULL) {
    row_free(row);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a declaration");
  }
  hf_status status = declaration_copy(from, row->memory, &row->row, error);
  if (status != HF_OK) {
    row_free(row);
    return status;
  }
  *out = row;
  return HF_OK;
}

/* A uuid is compared by its text; what lies behind it may be anything. */
static content_key content_of(const uuid *session, const char *fingerprint) {
  content_key key = {0};
  snprintf(key.session.text, sizeof key.session.text, "%s", session->text);
  snprintf(key.fingerprint, sizeof key.fingerprint, "%s", fingerprint);
  return key;
}

static declared_row *content_find(const declarations *d, const content_key *key) {
  declared_row *row = NULL;
  HASH_FIND(by_content, d->contents, key, sizeof *key, row);
  return row;
}

static void content_unlist(declarations *d, declared_row *row) {
  if (row->by_content.tbl != NULL) {
    HASH_DELETE(by_content, d->contents, row);
    row->by_content.tbl = NULL;
  }
}

static bool is_same_plan(const declaration *row, const uint8_t *canonical, size_t canonical_bytes) {
  return canonical == NULL || row->canonical == NULL ||
         (row->canonical_bytes == canonical_bytes && memcmp(row->canonical, canonical, canonical_bytes) == 0);
}

/* Another plan with the same fingerprint is never found: held by nothing, it is computed. */
static bool content_list(declarations *d, declared_row *row) {
  row->content = content_of(&row->row.session, row->row.fingerprint);
  if (!row->row.by_content || row->row.released || content_find(d, &row->content) != NULL) {
    return true;
  }
  HASH_ADD(by_content, d->contents, content, sizeof row->content, row);
  return row->by_content.tbl != NULL;
}

static void row_remove(declarations *d, declared_row *row) {
  content_unlist(d, row);
  HASH_DEL(d->rows, row);
  row_free(row);
}

hf_status declarations_add(declarations *d, const declaration *row, hf_error *error) {
  if (row_find(d, &row->key) != NULL) {
    return error_set(error, HF_E_NAME_EXISTS, "a cache id is declared already: %s", row->key.text);
  }
  declared_row *copy = NULL;
  HF_TRY(row_copy(row, &copy, error));
  HASH_ADD_STR(d->rows, row.key.text, copy);
  if (copy->hh.tbl == NULL) {
    row_free(copy);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a declaration");
  }
  if (!content_list(d, copy)) {
    row_remove(d, copy);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a declaration");
  }
  return HF_OK;
}

const declaration *declarations_find(const declarations *d, const uuid *key) {
  const declared_row *row = row_find(d, key);
  return row == NULL ? NULL : &row->row;
}

const declaration *declarations_find_by_fingerprint(const declarations *d, const uuid *session,
                                                    const char *fingerprint, const uint8_t *canonical,
                                                    size_t canonical_bytes) {
  content_key key = content_of(session, fingerprint);
  const declared_row *row = content_find(d, &key);
  return row != NULL && is_same_plan(&row->row, canonical, canonical_bytes) ? &row->row : NULL;
}

bool declarations_release(declarations *d, const uuid *key) {
  declared_row *row = row_find(d, key);
  if (row == NULL) {
    return false;
  }
  row->row.released = true;
  content_unlist(d, row);
  return true;
}

bool declarations_remove(declarations *d, const uuid *key) {
  declared_row *row = row_find(d, key);
  if (row == NULL) {
    return false;
  }
  row_remove(d, row);
  return true;
}

void declarations_remove_session(declarations *d, const uuid *session) {
  declared_row *row = NULL, *next = NULL;
  HASH_ITER(hh, d->rows, row, next) {
    if (uuid_equal(&row->row.session, session)) {
      row_remove(d, row);
    }
  }
}

void declarations_each(const declarations *d, const uuid *session,
                       bool (*each)(void *context, const declaration *row), void *context) {
  declared_row *row = NULL, *next = NULL;
  HASH_ITER(hh, d->rows, row, next) {
    if ((session == NULL || uuid_equal(&row->row.session, session)) && !each(context, &row->row)) {
      return;
    }
  }
}
