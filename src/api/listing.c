/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listing of held results: rows are collected while the session tells them,
 * then packed into one block that the caller frees.
 * Thread: any; rows come on the scheduler's thread while the caller waits.
 */
#include "api/dataframe.h"

#include "base/mem.h"

#include <string.h>

typedef struct collector {
  arena *memory; /* of the texts, and of `holds` */
  hf_hold *holds;
  size_t n, capacity;
  size_t text_bytes;
  bool failed;
} collector;

static const char *keep(collector *c, const char *text) {
  if (text == NULL || text[0] == '\0') {
    return NULL;
  }
  char *copy = arena_strdup(c->memory, text);
  c->failed = c->failed || copy == NULL;
  c->text_bytes += strlen(text) + 1;
  return copy;
}

static bool grow(collector *c) {
  if (c->n < c->capacity) {
    return true;
  }
  size_t capacity = c->capacity == 0 ? 16 : c->capacity * 2;
  hf_hold *holds = arena_array(c->memory, capacity, sizeof *holds);
  if (holds == NULL) {
    return false;
  }
  if (c->n > 0) {
    memcpy(holds, c->holds, c->n * sizeof *holds);
  }
  c->holds = holds;
  c->capacity = capacity;
  return true;
}

static void add_hold(void *context, const hold_row *row) {
  collector *c = context;
  if (c->failed || !grow(c)) {
    c->failed = true;
    return;
  }
  bool there = row->storage.state == HF_HOLD_MATERIALISED || row->storage.state == HF_HOLD_UNAVAILABLE;
  c->holds[c->n++] = (hf_hold){.storage = row->storage,
                               .session = keep(c, row->session.text),
                               .name = keep(c, row->name),
                               .last_drop = keep(c, row->last_drop),
                               .partitions = there ? row->partitions : 0,
                               .declared_us = row->declared_us,
                               .last_read_us = row->last_read_us,
                               .compute_us = there ? row->cost_us : 0,
                               .saved_us = there ? row->saved_us : 0};
}

/* Moves a text to *end, behind the rows. */
static const char *move(const char *text, char **end) {
  if (text == NULL) {
    return NULL;
  }
  size_t bytes = strlen(text) + 1;
  char *moved = memcpy(*end, text, bytes);
  *end += bytes;
  return moved;
}

static hf_status pack(const collector *c, hf_hold **out, size_t *n, hf_error *error) {
  hf_hold *packed = NULL;
  if (c->n > 0) {
    packed = mem_alloc(c->n * sizeof *packed + c->text_bytes);
    if (packed == NULL) {
      return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a listing");
    }
    char *end = (char *)(packed + c->n);
    memcpy(packed, c->holds, c->n * sizeof *packed);
    for (size_t i = 0; i < c->n; i++) {
      packed[i].session = move(packed[i].session, &end);
      packed[i].name = move(packed[i].name, &end);
      packed[i].last_drop = move(packed[i].last_drop, &end);
    }
  }
  *out = packed;
  *n = c->n;
  return HF_OK;
}

hf_status hf_session_holds(hf_session *session_handle, hf_hold **out, size_t *n, hf_error *error) {
  if (session_handle == NULL || out == NULL || n == NULL) {
    return argument_is_null(session_handle == NULL ? "session" : out == NULL ? "out" : "n", error);
  }
  collector c = {.memory = arena_new()};
  hf_status status =
      c.memory == NULL ? HF_E_OUT_OF_MEMORY : session_each_hold(session_handle->inner, add_hold, &c, error);
  if (status == HF_OK && c.failed) {
    status = HF_E_OUT_OF_MEMORY;
  }
  if (status == HF_E_OUT_OF_MEMORY) {
    error_set(error, status, "no memory for a listing");
  }
  if (status == HF_OK) {
    status = pack(&c, out, n, error);
  }
  arena_free(c.memory);
  return status;
}

void hf_holds_free(hf_hold *holds) {
  mem_free(holds);
}
