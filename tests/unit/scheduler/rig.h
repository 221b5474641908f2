/* SPDX-License-Identifier: Apache-2.0 */
/* A scheduler with the real parts below it, in a directory of the test's own; short ways to make relations and run them. */
#ifndef TESTS_UNIT_SCHEDULER_RIG_H
#define TESTS_UNIT_SCHEDULER_RIG_H

#include "scheduler/scheduler_internal.h"

#include "base/clock.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RIG_MOST_NAMES = 16 };
#define RIG_DEADLINE_US ((uint64_t)240 * 1000 * 1000)

typedef struct rig {
  char dir[64], work_dir[96], path[256];
  scheduler *s;
  uuid session;
  uint64_t ordered_below_bytes;
  uint32_t tasks;
  struct {
    const char *name;
    relation *bound;
  } names[RIG_MOST_NAMES];
  size_t n_names;
} rig;

static inline job_settings rig_settings(const rig *r) {
  static const stage_setting rows[] = {{"TimeZone", "UTC"}, {"default_null_order", "nulls_last"}};
  return (job_settings){.engine = rows,
                        .n_engine = 2,
                        .tasks = r->tasks,
                        .sink_budget_bytes = 64 << 20,
                        .batch_bytes = 1 << 20,
                        .block_bytes = 4 << 20,
                        .ordered_below_bytes = r->ordered_below_bytes};
}

static inline void rig_open(rig *r, unsigned slots) {
  memset(r, 0, sizeof *r);
  snprintf(r->dir, sizeof r->dir, "/tmp/hf-test-XXXXXX");
  assert_non_null(mkdtemp(r->dir));
  snprintf(r->work_dir, sizeof r->work_dir, "%s/work", r->dir);
  r->session = uuid_new();
  r->ordered_below_bytes = 64 << 20;
  static const char *const allowed[] = {"/tmp"};
  scheduler_options options = {.work_dir = r->work_dir,
                               .threads = 2,
                               .slots = slots,
                               .memory_bytes = (uint64_t)1 << 30,
                               .allowed_dirs = allowed,
                               .n_allowed_dirs = 1};
  hf_error error = {0};
  if (scheduler_open(&options, &r->s, &error) != HF_OK) {
    fail_msg("%s", error.message);
  }
}

static inline bool rig_exists(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0;
}

/* Closes; the work directory must be gone. */
static inline void rig_close(rig *r) {
  for (size_t i = 0; i < r->n_names; i++) {
    relation_release(r->names[i].bound);
  }
  scheduler_close(r->s);
  assert_false(rig_exists(r->work_dir));
  assert_int_equal(file_remove_tree(r->dir, NULL), HF_OK);
}

/* The path of a file of the test; valid until the next call. */
static inline const char *rig_path(rig *r, const char *name) {
  snprintf(r->path, sizeof r->path, "%s/%s", r->dir, name);
  return r->path;
}

/* Writes a CSV file with one column x of the numbers 1 … rows. */
static inline void rig_numbers(rig *r, const char *name, int rows) {
  FILE *file = fopen(rig_path(r, name), "w");
  assert_non_null(file);
  fprintf(file, "x\n");
  for (int i = 1; i <= rows; i++) {
    fprintf(file, "%d\n", i);
  }
  fclose(file);
}

/* --------------------------------------------------------------- relations */

typedef struct rig_parse {
  rig *r;
  const char *sql;
  relation *out;
} rig_parse;

static inline const relation *rig_lookup(void *context, const char *name) {
  const rig *r = context;
  for (size_t i = 0; i < r->n_names; i++) {
    if (strcmp(r->names[i].name, name) == 0) {
      return r->names[i].bound;
    }
  }
  return NULL;
}

static inline const char *rig_name_at(void *context, size_t i) {
  const rig *r = context;
  return i < r->n_names ? r->names[i].name : NULL;
}

static inline hf_status rig_parse_on(void *context, engine *lent, hf_error *error) {
  rig_parse *parse = context;
  relation_names names = {.lookup = rig_lookup, .name_at = rig_name_at, .context = parse->r};
  return relation_from_sql(lent, parse->sql, &names, &parse->out, error);
}

/* A relation of SQL text over the rig's names; "$DIR" in it is the test's directory. */
static inline relation *rig_sql(rig *r, const char *sql) {
  buf text = {0};
  const char *at = NULL;
  while ((at = strstr(sql, "$DIR")) != NULL) {
    buf_append(&text, sql, (size_t)(at - sql));
    buf_text(&text, r->dir);
    sql = at + 4;
  }
  buf_text(&text, sql);
  rig_parse parse = {.r = r, .sql = buf_cstr(&text)};
  job_settings settings = rig_settings(r);
  hf_error error = {0};
  if (scheduler_with_planner(r->s, &settings, rig_parse_on, &parse, &error) != HF_OK) {
    fail_msg("%s: %s", parse.sql, error.message);
  }
  buf_reset(&text);
  return parse.out;
}

static inline void rig_bind(rig *r, const char *name, relation *bound) {
  assert_true(r->n_names < RIG_MOST_NAMES);
  r->names[r->n_names].name = name;
  r->names[r->n_names++].bound = bound;
}

/* Binds the name to a declared cache node over the SQL. Borrowed until the rig is closed. */
static inline const relation *rig_cache(rig *r, const char *name, const char *sql) {
  relation *input = rig_sql(r, sql), *node = NULL;
  uuid id = uuid_new();
  assert_int_equal(relation_from_cache(&id, &r->session, input, "MEMORY_ONLY", &node, NULL), HF_OK);
  arena *a = arena_new();
  job_request request = {.session = r->session, .relation = input, .settings = rig_settings(r)};
  declaration row = {
      .key = id, .session = r->session, .level = "MEMORY_ONLY", .name = name, .declared_us = 1};
  hf_error error = {0};
  if (scheduler_describe(r->s, &request, a, &row.columns, &error) != HF_OK) {
    fail_msg("%s", error.message);
  }
  relation_fingerprint(input, row.fingerprint);
  assert_int_equal(scheduler_declare(r->s, &row, NULL), HF_OK);
  arena_free(a);
  relation_release(input);
  rig_bind(r, name, node);
  return node;
}

static inline uuid rig_key(const relation *node) {
  return relation_look(node).cache_id;
}

static inline hf_storage rig_storage(rig *r, const relation *node) {
  uuid key = rig_key(node);
  hf_storage storage;
  scheduler_storage(r->s, &key, &storage);
  return storage;
}

/* ----------------------------------------------------------------- running */

static inline void rig_ignore(void *context) {
  (void)context;
}

/* The BIGINT in the first row and column of a committed result. */
static inline int64_t rig_first(const job_result *result) {
  struct ArrowArrayStream stream;
  assert_int_equal(block_stream_open(result->locations, result->n_locations, rig_ignore, NULL, &stream, NULL),
                   HF_OK);
  struct ArrowArray rows = {0};
  assert_int_equal(stream.get_next(&stream, &rows), 0);
  assert_non_null(rows.release);
  assert_true(rows.length > 0 && rows.n_children > 0);
  const struct ArrowArray *values = rows.children[0];
  int64_t value = ((const int64_t *)values->buffers[1])[values->offset];
  rows.release(&rows);
  stream.release(&stream);
  return value;
}

/* Runs the relation. *value (not NULL) gets the first BIGINT; the result is let go. */
static inline hf_status rig_run_as(rig *r, const uuid *session, const relation *what, const job_watch *watch,
                                   int64_t *value, hf_profile *profile) {
  job_request request = {.session = *session, .relation = what, .settings = rig_settings(r)};
  job_result result;
  hf_error error = {0};
  hf_status status = scheduler_run(r->s, &request, watch, &result, profile, &error);
  if (status == HF_OK) {
    if (value != NULL) {
      *value = rig_first(&result);
    }
    arena_free(result.memory);
    scheduler_release_result(r->s, result.job);
  } else {
    assert_non_null(error.message);
    assert_int_equal(error.code, status);
  }
  hf_error_reset(&error);
  return status;
}

/* Parses and runs SQL; it must succeed. */
static inline int64_t rig_value(rig *r, const char *sql, hf_profile *profile) {
  relation *what = rig_sql(r, sql);
  int64_t value = 0;
  job_request request = {.session = r->session, .relation = what, .settings = rig_settings(r)};
  job_result result;
  hf_error error = {0};
  if (scheduler_run(r->s, &request, NULL, &result, profile, &error) != HF_OK) {
    fail_msg("%s: %s", sql, error.message);
  }
  value = rig_first(&result);
  arena_free(result.memory);
  scheduler_release_result(r->s, result.job);
  relation_release(what);
  return value;
}

/* A run on a thread of its own. */
typedef struct rig_thread {
  rig *r;
  relation *what; /* released at the join */
  job_watch watch;
  pthread_t thread;
  hf_status status;
  int64_t value;
  hf_profile profile;
} rig_thread;

static inline void *rig_thread_main(void *context) {
  rig_thread *t = context;
  t->status = rig_run_as(t->r, &t->r->session, t->what, &t->watch, &t->value, &t->profile);
  return NULL;
}

static inline void rig_start(rig *r, rig_thread *t, const char *sql) {
  t->r = r;
  t->what = rig_sql(r, sql);
  assert_int_equal(thread_start(&t->thread, 0, rig_thread_main, t, "test", NULL), HF_OK);
}

static inline void rig_join(rig_thread *t) {
  pthread_join(t->thread, NULL);
  relation_release(t->what);
}

/* -------------------------------------------------------------- looking in */

typedef struct rig_count {
  call base;
  job_state state;
  size_t count;
} rig_count;

static inline void rig_count_handle(scheduler *s, message *m) {
  rig_count *c = (rig_count *)m;
  for (const job *j = s->jobs; j != NULL; j = j->hh.next) {
    c->count += j->state == c->state ? 1 : 0;
  }
  registry_check(s->registry);
  call_finish(&c->base);
}

/* Jobs in the state, counted on the scheduler's thread. */
static inline size_t rig_jobs(rig *r, job_state state) {
  rig_count c = {.state = state};
  call_init(&c.base, rig_count_handle);
  assert_true(call_run(r->s, &r->s->events, &c.base));
  call_reset(&c.base);
  return c.count;
}

/* Asks until so many jobs are in the state. */
static inline void rig_await_jobs(rig *r, job_state state, size_t count) {
  uint64_t deadline = clock_monotonic_us() + RIG_DEADLINE_US;
  while (rig_jobs(r, state) != count) {
    if (clock_monotonic_us() > deadline) {
      fail_msg("no %zu jobs became %s", count, job_state_name(state));
    }
  }
}

/* Waits until all files that shall go have gone. */
static inline void rig_await_cleaner(rig *r) {
  uuid nobody = uuid_new();
  scheduler_remove_session(r->s, &nobody);
}

static inline const char *rig_found(const char *set) {
  static _Thread_local char found[512];
  if (set != NULL) {
    snprintf(found, sizeof found, "%s", set);
  }
  return found;
}

static inline int rig_visit(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info;
  const char *name = path + where->base;
  if (kind == FTW_F && name[0] == 't' && strstr(name, ".arrow") != NULL) {
    rig_found(path);
  }
  return 0;
}

/* The path of a block file below the session's directory; "" when there is none. */
static inline const char *rig_block_file(rig *r) {
  char root[160];
  snprintf(root, sizeof root, "%s/%s", r->work_dir, r->session.text);
  rig_found("");
  nftw(root, rig_visit, 16, FTW_PHYS);
  return rig_found(NULL);
}

#endif
