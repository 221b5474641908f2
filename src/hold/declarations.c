/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations: what users asked to hold. They change by user commands only and
 * exist before the first action and after loss. What exists is the registry's.
 * Thread: the scheduler's.
 */
#include "hold/hold.h"

#include "hold/registry_internal.h"

#include <string.h>

typedef struct declared_row {
  declaration row;
  arena *memory;
  UT_hash_handle hh; /* by row.key.text; iteration is in the order of adding */
} declared_row;

struct declarations {
  declared_row *rows;
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
  if (row == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a declaration");
  }
  row->row = *from;
  row->memory = arena_new();
  hf_status status = HF_OK;
  if (row->memory == NULL ||
      (from->name != NULL && (row->row.name = arena_strdup(row->memory, from->name)) == NULL)) {
    status = error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a declaration");
  } else {
    status = schema_copy(&from->columns, row->memory, &row->row.columns, error);
  }
  if (status != HF_OK) {
    row_free(row);
    return status;
  }
  *out = row;
  return HF_OK;
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
  return HF_OK;
}

const declaration *declarations_find(const declarations *d, const uuid *key) {
  const declared_row *row = row_find(d, key);
  return row == NULL ? NULL : &row->row;
}

bool declarations_release(declarations *d, const uuid *key) {
  declared_row *row = row_find(d, key);
  if (row == NULL) {
    return false;
  }
  row->row.released = true;
  return true;
}

void declarations_remove_session(declarations *d, const uuid *session) {
  declared_row *row = NULL, *next = NULL;
  HASH_ITER(hh, d->rows, row, next) {
    if (uuid_equal(&row->row.session, session)) {
      HASH_DEL(d->rows, row);
      row_free(row);
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
