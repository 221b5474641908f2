/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a DataFrame to a file: the query runs as for a client, then its
 * committed blocks are copied by DuckDB's own writer, on an instance that reaches
 * nothing but a fresh directory beside the target; the complete file is renamed.
 * So a query may read the file that it replaces, and nobody sees half of one.
 * Thread: the caller's; nothing else touches the instance.
 */
#include "session/session_internal.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* -------------------------------------------------------------------- options */

/* What the writers take; their values are checked by DuckDB. */
static const struct {
  const char *format, *name;
} OPTIONS[] = {
    {"csv", "compression"},
    {"csv", "dateformat"},
    {"csv", "delim"},
    {"csv", "delimiter"},
    {"csv", "escape"},
    {"csv", "header"},
    {"csv", "nullstr"},
    {"csv", "quote"},
    {"csv", "sep"},
    {"csv", "timestampformat"},
    {"parquet", "compression"},
    {"parquet", "compression_level"},
    {"parquet", "row_group_size"},
};
enum { N_OPTIONS = sizeof OPTIONS / sizeof OPTIONS[0] };

static hf_status find_option(const char *format, const char *name, const char **out, hf_error *error) {
  buf known = {0};
  for (size_t i = 0; i < N_OPTIONS; i++) {
    if (strcmp(OPTIONS[i].format, format) != 0) {
      continue;
    }
    if (strcasecmp(OPTIONS[i].name, name) == 0) {
      buf_reset(&known);
      *out = OPTIONS[i].name;
      return HF_OK;
    }
    buf_printf(&known, "%s%s", known.length == 0 ? "" : ", ", OPTIONS[i].name);
  }
  error_set(error, HF_E_INVALID_ARGUMENT, "the %s writer has no such option: %s", format, name);
  error_hint(error, "its options are %s", buf_cstr(&known));
  buf_reset(&known);
  return HF_E_INVALID_ARGUMENT;
}

static hf_status add_options(const session_target *target, buf *sql, hf_error *error) {
  for (size_t i = 0; i < target->n_options; i++) {
    const hf_setting *given = &target->options[i];
    const char *name = NULL;
    if (given->key == NULL || given->value == NULL) {
      return error_set(error, HF_E_INVALID_ARGUMENT, "a writer option needs a name and a value");
    }
    if (!utf8_is_right(given->key) || !utf8_is_right(given->value)) {
      return error_set(error, HF_E_INVALID_ARGUMENT, "a writer option is not UTF-8: number %zu", i + 1);
    }
    HF_TRY(find_option(target->format, given->key, &name, error));
    buf_printf(sql, ", %s ", name);
    buf_sql_string(sql, given->value);
  }
  return HF_OK;
}

/* --------------------------------------------------------------------- places */

typedef struct place {
  const char *path;   /* the file's, at the end */
  const char *made;   /* the directory beside it; NULL: not made */
  const char *inside; /* the file in there */
} place;

/* Says what is there. Errors: NAME_EXISTS, FILE_FORMAT. */
static hf_status check_free(const session_target *target, const char *path, hf_error *error) {
  struct stat facts;
  if (lstat(path, &facts) != 0) {
    return HF_OK; /* what else is wrong will be met when it is written */
  }
  if (S_ISDIR(facts.st_mode)) {
    error_set(error, HF_E_FILE_FORMAT, "the path is a directory: %s", target->path);
    error_hint(error, "name the file in it");
    return HF_E_FILE_FORMAT;
  }
  if (!target->overwrite) {
    error_set(error, HF_E_NAME_EXISTS, "a file of this name exists: %s", target->path);
    error_hint(error, "ask to overwrite it, or choose another name");
    return HF_E_NAME_EXISTS;
  }
  return HF_OK;
}

static hf_status make_beside(const session_target *target, arena *a, place *p, hf_error *error) {
  size_t length = (size_t)(strrchr(p->path, '/') - p->path);
  char *made = arena_printf(a, "%.*s/.holdfast-XXXXXX", (int)length, p->path);
  if (made == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to write a file");
  }
  if (mkdtemp(made) == NULL) {
    return error_set_errno(error, errno, HF_E_FILE_NOT_FOUND, "a file cannot be written: %s", target->path);
  }
  p->made = made;
  p->inside = arena_printf(a, "%s/file", made);
  return p->inside == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to write a file") : HF_OK;
}

/* Some file systems know only one of the two. */
static int rename_to_free(const char *from, const char *to) {
  int failed = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
  return failed != 0 && (errno == EINVAL || errno == ENOSYS) ? link(from, to) : failed;
}

/* Gives the file its name; what came to be there meanwhile stays, unless it is to be overwritten. */
static hf_status move_in(const session_target *target, const place *p, hf_error *error) {
  int failed = target->overwrite ? rename(p->inside, p->path) : rename_to_free(p->inside, p->path);
  if (failed == 0) {
    return HF_OK;
  }
  return errno == EEXIST ? check_free(target, p->path, error)
                         : error_set_errno(error, errno, HF_E_FILE_NOT_FOUND, "a file cannot be written: %s",
                                           target->path);
}

/* --------------------------------------------------------------------- reading */

/* The blocks, watched while they are copied: at each array it is seen whether anybody wants the copy still. */
typedef struct copying {
  session *session;
  const job_watch *watch;
  block_input *blocks;
  uint64_t rows;    /* given out */
  uint64_t told_us; /* when progress was last told */
} copying;

typedef struct copying_scan {
  copying *copying;
  void *inner;
} copying_scan;

static hf_status copying_wrap(copying *c, void *inner, void **out, hf_error *error) {
  copying_scan *scan = mem_alloc(sizeof *scan);
  if (scan == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to write a file");
  }
  *scan = (copying_scan){c, inner};
  *out = scan;
  return HF_OK;
}

static hf_status copying_open(void *given, const size_t *columns, size_t n_columns, void **scan,
                              unsigned *threads, hf_error *error) {
  copying *c = given;
  void *inner = NULL;
  HF_TRY(block_input_ops()->open(c->blocks, columns, n_columns, &inner, threads, error));
  hf_status status = copying_wrap(c, inner, scan, error);
  if (status != HF_OK) {
    block_input_ops()->close(inner);
  }
  return status;
}

static hf_status copying_thread_open(void *scan, void **state, hf_error *error) {
  copying_scan *outer = scan;
  void *inner = NULL;
  HF_TRY(block_input_ops()->thread_open(outer->inner, &inner, error));
  hf_status status = copying_wrap(outer->copying, inner, state, error);
  if (status != HF_OK) {
    block_input_ops()->thread_close(inner);
  }
  return status;
}

/* Tells progress about ten times a second; false: it is not wanted any more. */
static bool tell(copying *c) {
  const job_watch *watch = c->watch;
  uint64_t now = clock_monotonic_us();
  if (watch->progress == NULL || now - c->told_us < 100000) {
    return true;
  }
  c->told_us = now;
  uint64_t rows = block_input_rows(c->blocks);
  return watch->progress(watch->progress_context, rows == 0 ? 1 : (double)c->rows / (double)rows, c->rows);
}

static hf_status copying_next(void *state, struct ArrowArray *out, hf_error *error) {
  copying_scan *outer = state;
  copying *c = outer->copying;
  if (session_is_closed(c->session)) {
    return error_set(error, HF_E_SESSION_CLOSED, "the session was closed while a file was written");
  }
  if (cancel_is_signalled(c->watch->cancel) || !tell(c)) {
    return error_set(error, HF_E_CANCELLED, "writing a file was cancelled");
  }
  HF_TRY(block_input_ops()->next(outer->inner, out, error));
  c->rows += (uint64_t)out->length;
  return HF_OK;
}

static void copying_thread_close(void *state) {
  copying_scan *outer = state;
  block_input_ops()->thread_close(outer->inner);
  mem_free(outer);
}

static void copying_close(void *scan) {
  copying_scan *outer = scan;
  block_input_ops()->close(outer->inner);
  mem_free(outer);
}

static const source_ops COPYING_OPS = {.open = copying_open,
                                       .thread_open = copying_thread_open,
                                       .next = copying_next,
                                       .thread_close = copying_thread_close,
                                       .close = copying_close};

/* --------------------------------------------------------------------- writing */

static hf_status copy_text(const session_target *target, const place *p, const schema *columns, buf *sql,
                           hf_error *error) {
  buf_text(sql, "COPY ");
  lower_scan_sql(columns, "hf_blocks('r')", true, sql);
  buf_text(sql, " TO ");
  buf_sql_string(sql, p->inside);
  buf_printf(sql, " (FORMAT %s", target->format);
  HF_TRY(add_options(target, sql, error));
  buf_text(sql, ")");
  return sql->failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to write a file") : HF_OK;
}

/* What the writer may have beside the slots: a row group of a wide table. */
#define WRITER_MOST_BYTES ((uint64_t)1 << 30)

static uint64_t writer_memory(session *s) {
  pthread_mutex_lock(&s->lock);
  uint64_t all = config_number(s->settings, CONFIG_MEMORY); /* 0: auto */
  pthread_mutex_unlock(&s->lock);
  return all == 0 || all > WRITER_MOST_BYTES ? WRITER_MOST_BYTES : all;
}

/* One thread: it keeps the order of the rows. */
static hf_status open_writer(session *s, const place *p, arena *a, engine **out, hf_error *error) {
  job_settings settings;
  HF_TRY(settings_for_job(s, a, &settings, error));
  engine_setting *rows = arena_array(a, settings.n_engine, sizeof *rows);
  if (rows == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to write a file");
  }
  for (size_t i = 0; i < settings.n_engine; i++) {
    rows[i] = (engine_setting){settings.engine[i].name, settings.engine[i].value};
  }
  engine_options options = {.kind = ENGINE_SLOT,
                            .threads = 1,
                            .memory_bytes = writer_memory(s),
                            .allowed_dirs = &p->made,
                            .n_allowed_dirs = 1,
                            .settings = rows,
                            .n_settings = settings.n_engine,
                            .extension_dir = engine_extension_dir(a)};
  return engine_open(&options, out, error);
}

static hf_status copy_blocks(copying *c, engine *writer, const char *sql, hf_error *error) {
  engine_input input = {.id = "r",
                        .ops = &COPYING_OPS,
                        .source = c,
                        .columns = block_input_columns(c->blocks),
                        .block_schema = block_input_arrow_schema(c->blocks),
                        .rows = block_input_rows(c->blocks)};
  engine_shown copied = {.sql = sql, .inputs = &input, .n_inputs = 1};
  return engine_copy(writer, &copied, error);
}

static hf_status write_result(session *s, const session_target *target, const job_watch *watch,
                              const job_result *result, place *p, hf_error *error) {
  arena *a = result->memory;
  copying c = {.session = s, .watch = watch};
  engine *writer = NULL;
  buf sql = {0};
  block_input_options options = {
      .locations = result->locations, .n_locations = result->n_locations, .ordered = true, .threads = 1};
  hf_status status = make_beside(target, a, p, error);
  if (status == HF_OK) {
    status = copy_text(target, p, &result->columns, &sql, error);
  }
  if (status == HF_OK) {
    status = block_input_new(&options, &c.blocks, error);
  }
  if (status == HF_OK) {
    status = open_writer(s, p, a, &writer, error);
  }
  if (status == HF_OK) {
    status = copy_blocks(&c, writer, buf_cstr(&sql), error);
  }
  engine_close(writer);
  block_input_free(c.blocks);
  buf_reset(&sql);
  return status;
}

/* Checks what can be known before anything runs. */
static hf_status check_target(session *s, const session_target *target, arena *a, place *p, hf_error *error) {
  buf ignored = {0};
  hf_status status = add_options(target, &ignored, error);
  buf_reset(&ignored);
  HF_TRY(status);
  HF_TRY(source_target(scheduler_sources(runtime_scheduler(s->runtime)), target->path, a, &p->path, error));
  return check_free(target, p->path, error);
}

static hf_status write_entered(session *s, const session_write_call *call, arena *a, hf_error *error) {
  place p = {0};
  job_result result;
  hf_profile ignored, *profile = call->profile == NULL ? &ignored : call->profile;
  HF_TRY(check_target(s, call->target, a, &p, error));
  HF_TRY(result_run(s, call->relation, call->watch, profile, &result, error));
  uint64_t begun_us = clock_monotonic_us();
  hf_status status = write_result(s, call->target, call->watch, &result, &p, error);
  if (status == HF_OK) {
    status = move_in(call->target, &p, error);
  }
  profile->elapsed_us += clock_monotonic_us() - begun_us;
  if (p.made != NULL) {
    file_remove_tree(p.made, NULL);
  }
  scheduler_release_result(runtime_scheduler(s->runtime), result.job);
  arena_free(result.memory);
  if (status == HF_OK) {
    session_note_written(s, p.path);
    status = durable_flush(s, error); /* that holds of the old file are gone */
  }
  return status;
}

hf_status session_write(session *s, const session_write_call *call, hf_error *error) {
  HF_TRY(session_enter(s, error));
  arena *a = arena_new();
  hf_status status = a == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to write a file")
                               : write_entered(s, call, a, error);
  arena_free(a);
  return session_leave(s, status);
}
