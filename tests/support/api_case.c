/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing of a case, results as text, files; see api_case.h. */
#include "support/api_case.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------------- files */

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)info;
  (void)kind;
  (void)walk;
  return remove(path);
}

bool path_exists(const char *path) {
  return access(path, F_OK) == 0;
}

static _Thread_local unsigned n_files;

static int count_entry(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)path;
  (void)info;
  (void)walk;
  n_files += kind == FTW_F;
  return 0;
}

unsigned files_below(const char *dir) {
  n_files = 0;
  nftw(dir, count_entry, 16, FTW_PHYS);
  return n_files;
}

const char *api_file(api_case *c, const char *name, const char *contents) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", c->dir, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(contents, 1, strlen(contents), file), strlen(contents));
  assert_int_equal(fclose(file), 0);
  return path;
}

/* -------------------------------------------------------------- open, close */

static int open_case(void **state, const char *threads, const char *slots) {
  api_case *c = calloc(1, sizeof *c);
  assert_non_null(c);
  snprintf(c->dir, sizeof c->dir, "/tmp/hf-api-XXXXXX");
  assert_non_null(mkdtemp(c->dir));
  snprintf(c->work_dir, sizeof c->work_dir, "%s/work", c->dir);
  const hf_setting settings[] = {
      {"work_dir", c->work_dir}, {"threads", threads}, {"memory", "512MiB"}, {"slots", slots}};
  hf_status status = hf_session_open("local", settings, 4, &c->session, &c->error);
  if (status != HF_OK) {
    fail_msg("open: %s", c->error.message);
  }
  *state = c;
  return 0;
}

int api_case_open(void **state) {
  return open_case(state, "2", "1");
}

int api_case_open_one_thread(void **state) {
  return open_case(state, "1", "1");
}

int api_case_open_two_slots(void **state) {
  return open_case(state, "2", "2");
}

int api_case_close(void **state) {
  api_case *c = *state;
  hf_session_close(c->session);
  hf_error_reset(&c->error);
  if (path_exists(c->work_dir)) {
    print_error("the work directory is still there with %u files\n", files_below(c->work_dir));
    nftw(c->dir, remove_entry, 16, FTW_PHYS | FTW_DEPTH);
    return -1;
  }
  nftw(c->dir, remove_entry, 16, FTW_PHYS | FTW_DEPTH);
  free(c);
  return 0;
}

/* --------------------------------------------------------------------- text */

typedef struct text {
  char *data;
  size_t length, capacity;
} text;

static void text_add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void text_add(text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *piece = NULL;
  int length = vasprintf(&piece, format, args);
  va_end(args);
  assert_true(length >= 0);
  if (t->length + (size_t)length + 1 > t->capacity) {
    t->capacity = t->capacity * 2 + (size_t)length + 1;
    t->data = realloc(t->data, t->capacity);
    assert_non_null(t->data);
  }
  memcpy(t->data + t->length, piece, (size_t)length + 1);
  t->length += (size_t)length;
  free(piece);
}

static bool is_null(const struct ArrowArray *column, int64_t at) {
  const uint8_t *valid = column->buffers[0];
  return column->null_count != 0 && valid != NULL && (valid[at / 8] >> (at % 8) & 1) == 0;
}

static void add_cell(text *t, const struct ArrowSchema *field, const struct ArrowArray *column, int64_t row) {
  int64_t at = row + column->offset;
  const void *values = column->n_buffers > 1 ? column->buffers[1] : NULL;
  if (strcmp(field->format, "n") == 0 || is_null(column, at)) {
    text_add(t, "NULL");
    return;
  }
  if (strcmp(field->format, "l") == 0) {
    text_add(t, "%" PRId64, ((const int64_t *)values)[at]);
  } else if (strcmp(field->format, "i") == 0) {
    text_add(t, "%" PRId32, ((const int32_t *)values)[at]);
  } else if (strcmp(field->format, "g") == 0) {
    text_add(t, "%g", ((const double *)values)[at]);
  } else if (strcmp(field->format, "b") == 0) {
    text_add(t, "%s", (((const uint8_t *)values)[at / 8] >> (at % 8) & 1) != 0 ? "true" : "false");
  } else if (strcmp(field->format, "u") == 0) {
    const int32_t *offsets = values;
    text_add(t, "%.*s", (int)(offsets[at + 1] - offsets[at]), (const char *)column->buffers[2] + offsets[at]);
  } else {
    text_add(t, "<%s>", field->format);
  }
}

static void add_batch(text *t, const struct ArrowSchema *fields, const struct ArrowArray *batch) {
  for (int64_t row = 0; row < batch->length; row++) {
    for (int64_t i = 0; i < fields->n_children; i++) {
      text_add(t, i == 0 ? "" : "|");
      add_cell(t, fields->children[i], batch->children[i], row);
    }
    text_add(t, "\n");
  }
}

/* ---------------------------------------------------------------------- SQL */

static void expect_ok(api_case *c, hf_status status, const char *what) {
  if (status != HF_OK) {
    fail_msg("%s: %s: %s (hint: %s, cause: %s)", what, hf_status_name(status),
             c->error.message == NULL ? "" : c->error.message, c->error.hint == NULL ? "" : c->error.hint,
             c->error.cause == NULL ? "" : c->error.cause);
  }
}

hf_df *api_sql(api_case *c, const char *sql) {
  hf_df *df = NULL;
  expect_ok(c, hf_session_sql(c->session, sql, &df, &c->error), sql);
  return df;
}

void api_run(api_case *c, const char *sql) {
  hf_df_free(api_sql(c, sql));
}

void api_fails(api_case *c, const char *sql, hf_status code) {
  hf_df *df = NULL;
  struct ArrowArrayStream stream;
  hf_error_reset(&c->error);
  hf_status status = hf_session_sql(c->session, sql, &df, &c->error);
  if (status == HF_OK) {
    status = hf_df_collect(df, NULL, &stream, &c->error);
    hf_df_free(df);
    if (status == HF_OK) {
      stream.release(&stream);
    }
  }
  if (status != code) {
    fail_msg("%s: %s instead of %s: %s", sql, hf_status_name(status), hf_status_name(code),
             c->error.message == NULL ? "" : c->error.message);
  }
  assert_int_equal(c->error.code, code);
  assert_non_null(c->error.message);
}

char *api_rows(api_case *c, hf_df *df, hf_profile *profile) {
  struct ArrowArrayStream stream;
  struct ArrowSchema fields;
  hf_action_options options = {.profile = profile};
  text t = {0};
  text_add(&t, "%s", "");
  expect_ok(c, hf_df_collect(df, &options, &stream, &c->error), "collect");
  assert_int_equal(stream.get_schema(&stream, &fields), 0);
  for (;;) {
    struct ArrowArray batch;
    if (stream.get_next(&stream, &batch) != 0) {
      fail_msg("get_next: %s", stream.get_last_error(&stream));
    }
    if (batch.release == NULL) {
      break;
    }
    add_batch(&t, &fields, &batch);
    batch.release(&batch);
  }
  fields.release(&fields);
  stream.release(&stream);
  return t.data;
}

hf_profile api_expect_df(api_case *c, hf_df *df, const char *rows) {
  hf_profile profile;
  char *found = api_rows(c, df, &profile);
  assert_string_equal(found, rows);
  free(found);
  return profile;
}

void api_expect(api_case *c, const char *sql, const char *rows) {
  hf_df *df = api_sql(c, sql);
  api_expect_df(c, df, rows);
  hf_df_free(df);
}

hf_df *api_cache(api_case *c, hf_df *df) {
  hf_df *held = NULL;
  expect_ok(c, hf_df_cache(df, &held, &c->error), "cache");
  return held;
}

hf_storage api_storage(api_case *c, hf_df *df) {
  hf_storage storage;
  expect_ok(c, hf_df_storage(df, &storage, &c->error), "storage");
  return storage;
}

void api_await_state(api_case *c, hf_df *held, hf_hold_state wanted) {
  time_t deadline = time(NULL) + 240;
  while (api_storage(c, held).state != wanted) {
    if (time(NULL) > deadline) {
      fail_msg("the hold does not become %d", (int)wanted);
    }
  }
}

uint64_t api_count(api_case *c, hf_df *df, hf_profile *profile) {
  hf_action_options options = {.profile = profile};
  uint64_t rows = 0;
  expect_ok(c, hf_df_count(df, &options, &rows, &c->error), "count");
  return rows;
}
