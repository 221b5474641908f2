/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the steps of a spec do, by the public API. A result is one line.
 * Thread: the actor's.
 */
#include "isolation.h"

#include "support/api_case.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

void action_say_status(hf_status status, hf_error *error, char *out, size_t bytes) {
  snprintf(out, bytes, "%s", status == HF_OK ? "ok" : hf_status_name(status));
  hf_error_reset(error);
}

/* ----------------------------------------------------------------- collect */

static void say_cell(const struct ArrowArray *column, const char *format, int64_t row, char *out,
                     size_t bytes) {
  int64_t at = row + column->offset;
  const uint8_t *valid = column->buffers[0];
  if (column->null_count != 0 && valid != NULL && (valid[at / 8] >> (at % 8) & 1) == 0) {
    snprintf(out, bytes, "NULL");
  } else if (strcmp(format, "l") == 0) {
    snprintf(out, bytes, "%" PRId64, ((const int64_t *)column->buffers[1])[at]);
  } else if (strcmp(format, "i") == 0) {
    snprintf(out, bytes, "%" PRId32, ((const int32_t *)column->buffers[1])[at]);
  } else if (strcmp(format, "u") == 0) {
    const int32_t *offsets = column->buffers[1];
    snprintf(out, bytes, "%.*s", (int)(offsets[at + 1] - offsets[at]),
             (const char *)column->buffers[2] + offsets[at]);
  } else {
    snprintf(out, bytes, "?%s", format);
  }
}

/* Rows as "a|b c|d", in their order; types: BIGINT, INTEGER, VARCHAR. */
static void say_rows(struct ArrowArrayStream *stream, char *out, size_t bytes) {
  struct ArrowSchema schema = {0};
  struct ArrowArray batch = {0};
  stream->get_schema(stream, &schema);
  size_t used = 0;
  out[0] = '\0';
  while (stream->get_next(stream, &batch) == 0 && batch.release != NULL) {
    for (int64_t row = 0; row < batch.length; row++) {
      for (int64_t c = 0; c < batch.n_children && used + 64 < bytes; c++) {
        char cell[64];
        say_cell(batch.children[c], schema.children[c]->format, row, cell, sizeof cell);
        used += (size_t)snprintf(out + used, bytes - used, "%s%s", c > 0 ? "|" : used > 0 ? " " : "", cell);
      }
    }
    batch.release(&batch);
  }
  schema.release(&schema);
}

/* What was reused, and how much of the sources was read. */
static void say_profile(const hf_profile *p, char *out, size_t bytes) {
  const struct {
    const char *name;
    uint64_t n;
  } parts[] = {{"fill", p->held_fills},
               {"hit", p->held_hits},
               {"wait", p->held_waits},
               {"inline", p->held_inline},
               {"source rows", p->source_rows}};
  size_t used = (size_t)snprintf(out, bytes, " [");
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    if (parts[i].n > 0) {
      used += (size_t)snprintf(out + used, bytes - used, "%s%" PRIu64 " %s", used > 2 ? ", " : "", parts[i].n,
                               parts[i].name);
    }
  }
  snprintf(out + used, bytes - used, "]%s%s", p->warning[0] != '\0' ? " warned" : "", "");
}

static void set_cancel(actor *a, hf_cancel *cancel) {
  pthread_mutex_lock(&a->stage->lock);
  hf_cancel *old = a->cancel;
  a->cancel = cancel;
  pthread_mutex_unlock(&a->stage->lock);
  hf_cancel_free(old);
}

static void do_collect(actor *a, char *out, size_t bytes) {
  hf_profile profile = {0};
  hf_error error = {0};
  struct ArrowArrayStream stream = {0};
  hf_df *df = stage_frame(a->stage, a->step->rest);
  set_cancel(a, hf_cancel_new());
  hf_action_options options = {.cancel = a->cancel, .profile = &profile};
  hf_status status = hf_df_collect(df, &options, &stream, &error);
  set_cancel(a, NULL);
  if (status != HF_OK) {
    action_say_status(status, &error, out, bytes);
    return;
  }
  say_rows(&stream, out, bytes);
  stream.release(&stream);
  size_t used = strlen(out);
  say_profile(&profile, out + used, bytes - used);
}

static void do_sql(actor *a, char *out, size_t bytes) {
  char session[64] = "", sql[TEXT] = "";
  hf_error error = {0};
  hf_df *df = NULL;
  sscanf(a->step->rest, "%63s %1023[^\n]", session, sql);
  hf_status status = hf_session_sql(stage_session(a->stage, session), sql, &df, &error);
  hf_df_free(df);
  action_say_status(status, &error, out, bytes);
}

static void do_explain(actor *a, char *out, size_t bytes) {
  hf_error error = {0};
  char *text = NULL;
  hf_status status = hf_df_explain(stage_frame(a->stage, a->step->rest), &text, &error);
  const char *at = text == NULL ? NULL : strstr(text, "CachedRead [");
  if (status == HF_OK && at != NULL) {
    snprintf(out, bytes, "%.*s", (int)strcspn(at, "]") + 1, at);
  } else {
    action_say_status(status, &error, out, bytes);
  }
  hf_text_free(text);
}

/* How the held result came to be read, and the attempts of the query and its fills. */
static void do_analyze(actor *a, char *out, size_t bytes) {
  hf_error error = {0};
  char *text = NULL;
  hf_status status = hf_df_explain_analyze(stage_frame(a->stage, a->step->rest), NULL, &text, &error);
  const char *at = text == NULL ? NULL : strstr(text, "CachedRead ["), *total = NULL;
  if (status == HF_OK && at != NULL && (total = strstr(text, "== Total ==\n")) != NULL) {
    total += strcspn(total, "\n") + 1;
    snprintf(out, bytes, "%.*s; %.*s", (int)strcspn(at, "]") + 1, at, (int)strcspn(total, "\n"), total);
  } else {
    action_say_status(status, &error, out, bytes);
  }
  hf_text_free(text);
}

/* ----------------------------------------------------------------- holding */

static void do_hold(actor *a, char *out, size_t bytes) {
  char name[64] = "", of[64] = "";
  hf_error error = {0};
  hf_df *held = NULL;
  sscanf(a->step->rest, "%63s %63s", name, of);
  hf_status status = hf_df_cache(stage_frame(a->stage, of), &held, &error);
  if (status == HF_OK) {
    stage_name(a->stage, name, held, false);
  }
  action_say_status(status, &error, out, bytes);
}

static void do_unpersist(actor *a, char *out, size_t bytes) {
  char name[64] = "", how[64] = "";
  hf_error error = {0};
  sscanf(a->step->rest, "%63s %63s", name, how);
  hf_status status = hf_df_unpersist(stage_frame(a->stage, name), strcmp(how, "blocking") == 0, &error);
  action_say_status(status, &error, out, bytes);
}

static void do_storage(actor *a, char *out, size_t bytes) {
  static const char *const states[] = {"not declared", "declared",    "pending",
                                       "materialised", "unavailable", "released"};
  hf_storage storage = {0};
  hf_error error = {0};
  hf_status status = hf_df_storage(stage_frame(a->stage, a->step->rest), &storage, &error);
  if (status != HF_OK) {
    action_say_status(status, &error, out, bytes);
    return;
  }
  snprintf(out, bytes, "%s, generation %" PRIu64 ", %" PRIu64 " hits", states[storage.state],
           storage.generation, storage.hits);
}

static void do_list(actor *a, char *out, size_t bytes) {
  hf_hold *holds = NULL;
  hf_error error = {0};
  size_t n = 0, used = 0;
  hf_status status = hf_session_holds(stage_session(a->stage, a->step->rest), &holds, &n, &error);
  if (status != HF_OK) {
    action_say_status(status, &error, out, bytes);
    return;
  }
  used += (size_t)snprintf(out, bytes, "%zu", n);
  for (size_t i = 0; i < n; i++) {
    used += (size_t)snprintf(out + used, bytes - used, "%s generation %" PRIu64 "%s%s", i == 0 ? ":" : ",",
                             holds[i].storage.generation, holds[i].last_drop == NULL ? "" : " dropped by ",
                             holds[i].last_drop == NULL ? "" : holds[i].last_drop);
  }
  hf_holds_free(holds);
}

/* ------------------------------------------------------------------ others */

static void do_cancel(actor *a, char *out, size_t bytes) {
  stage *s = a->stage;
  pthread_mutex_lock(&s->lock);
  for (size_t i = 0; i < s->n_actors; i++) {
    if (strcmp(s->actors[i].name, a->step->rest) == 0) {
      hf_cancel_signal(s->actors[i].cancel);
    }
  }
  pthread_mutex_unlock(&s->lock);
  snprintf(out, bytes, "ok");
}

static void do_close(actor *a, char *out, size_t bytes) {
  hf_session *session = stage_session(a->stage, a->step->rest);
  stage_forget(a->stage, a->step->rest);
  hf_session_close(session);
  snprintf(out, bytes, "ok");
}

/* "NAME TEXT" with \n in the text. A time of its own tells each version from the one before. */
static void do_write(actor *a, char *out, size_t bytes) {
  char name[64] = "", path[256];
  int at = 0;
  sscanf(a->step->rest, "%63s %n", name, &at);
  snprintf(path, sizeof path, "%s/%s", a->stage->dir, name);
  FILE *file = fopen(path, "w");
  if (file == NULL) {
    snprintf(out, bytes, "cannot be written: %s", path);
    return;
  }
  for (const char *c = a->step->rest + at; *c != '\0'; c++) {
    if (c[0] == '\\' && c[1] == 'n') {
      fputc('\n', file);
      c++;
    } else {
      fputc(*c, file);
    }
  }
  fclose(file);
  snprintf(out, bytes, "ok");
}

/* The largest file that may be written from now on, in bytes; "none". A file at the limit is a full disk to Holdfast. */
static void do_disk(actor *a, char *out, size_t bytes) {
  struct rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = strcmp(a->step->rest, "none") == 0 ? limit.rlim_max : strtoul(a->step->rest, NULL, 10);
  signal(SIGXFSZ, SIG_IGN);
  snprintf(out, bytes, "%s", setrlimit(RLIMIT_FSIZE, &limit) == 0 ? "ok" : "cannot be limited");
}

/* "closed", "open"; "oldest" and "newest" let one task through that parks. */
static void do_gate(actor *a, char *out, size_t bytes) {
  const char *how = a->step->rest;
  bool is_known = true;
  if (strcmp(how, "closed") == 0 || strcmp(how, "open") == 0) {
    gate_set(strcmp(how, "closed") == 0);
  } else {
    is_known = gate_let(strcmp(how, "newest") == 0);
  }
  snprintf(out, bytes, "%s", is_known ? "ok" : "nobody parks");
}

static int remove_blocks(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)info;
  (void)walk;
  size_t n = strlen(path);
  return kind == FTW_F && n > 6 && strcmp(path + n - 6, ".arrow") == 0 && unlink(path) != 0 &&
         errno != ENOENT;
}

/* Deletes the blocks of all results behind Holdfast's back. */
static void do_damage(actor *a, char *out, size_t bytes) {
  snprintf(out, bytes, "%s",
           nftw(a->stage->work_dir, remove_blocks, 16, FTW_PHYS) == 0 ? "ok" : "not deleted");
}

/* Whether result files are there, but for those of open streams. */
static void do_files(actor *a, char *out, size_t bytes) {
  char path[128];
  snprintf(path, sizeof path, "%s/%.40s", a->stage->work_dir, a->step->rest);
  snprintf(out, bytes, "%s", files_below(path) > 0 ? "some" : "none");
}

void action_run(actor *a, char *out, size_t bytes) {
  static const struct {
    const char *name;
    void (*run)(actor *a, char *out, size_t bytes);
  } actions[] = {{"collect", do_collect}, {"sql", do_sql},       {"explain", do_explain},
                 {"hold", do_hold},       {"cancel", do_cancel}, {"unpersist", do_unpersist},
                 {"storage", do_storage}, {"list", do_list},     {"close", do_close},
                 {"write", do_write},     {"disk", do_disk},     {"gate", do_gate},
                 {"files", do_files},     {"damage", do_damage}, {"analyze", do_analyze}};
  for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
    if (strcmp(actions[i].name, a->step->action) == 0) {
      actions[i].run(a, out, bytes);
      return;
    }
  }
  snprintf(out, bytes, "no such action: %s", a->step->action);
}
