/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a start finds in a kept work directory: whether claimed blocks are there,
 * and the sweep of attempts that nobody claims. An orphan is renamed into trash/
 * at once and deleted later, so that a start does not wait for it and a process
 * that dies meanwhile leaves nothing that looks like blocks.
 * Thread: that which opens the executor; executor_empty_trash any.
 */
#include "executor_internal.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The levels below the work directory: session, job, stage, attempt. */
enum { ATTEMPT_LEVEL = 3 };

hf_status executor_check_blocks(const executor *x, const block_ref *refs, size_t n_refs, hf_error *error) {
  arena *a = arena_new();
  block_location *locations = a == NULL ? NULL : arena_array(a, n_refs, sizeof *locations);
  bool is_complete = locations != NULL;
  for (size_t i = 0; is_complete && i < n_refs; i++) {
    locations[i].dir = executor_attempt_dir(x, &refs[i], a);
    is_complete = locations[i].dir != NULL;
  }
  block_input_options options = {.locations = locations, .n_locations = n_refs, .threads = 1};
  block_input *input = NULL;
  hf_status status = is_complete ? block_input_new(&options, &input, error)
                                 : error_set(error, HF_E_OUT_OF_MEMORY, "no memory to look for blocks");
  block_input_free(input);
  arena_free(a);
  return status;
}

/* ------------------------------------------------------------------- sweep */

/* Claimed paths below the work directory, sorted. */
typedef struct sweep {
  const char *root, *trash; /* trash NULL: it cannot be made, nothing moves */
  const char **claims;
  size_t n_claims;
  size_t n_moved;
  uint64_t largest_job;
  bool is_incomplete; /* no memory somewhere */
} sweep;

static int text_order(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_claimed(const sweep *s, const char *below_root) {
  return bsearch(&below_root, s->claims, s->n_claims, sizeof *s->claims, text_order) != NULL;
}

static void move_to_trash(sweep *s, const char *path) {
  if (s->trash == NULL) {
    return;
  }
  uuid name = uuid_new();
  buf to = {0};
  buf_printf(&to, "%s/%s", s->trash, name.text);
  if (to.failed) {
    s->is_incomplete = true;
  } else if (rename(path, to.data) == 0) {
    s->n_moved++;
  } else if (errno != ENOENT) {
    log_event(LOG_WARN, "executor", "cannot_sweep=%s cause=\"%s\"", path, strerror(errno));
  }
  buf_reset(&to);
}

/* Is it a name that level 0 (session), 1 (job), 2 (stage) or 3 (attempt) has? Others are not ours. */
static bool is_name_of(int level, const char *name) {
  uuid session;
  if (level == 0) {
    return uuid_parse(name, &session);
  }
  size_t first = strspn(name, "0123456789");
  const char *rest = name + first;
  if (level == ATTEMPT_LEVEL && first > 0 && *rest == '-') {
    rest += 1 + strspn(rest + 1, "0123456789");
  }
  return first > 0 && *rest == '\0';
}

static void note_job(sweep *s, const char *name) {
  uint64_t job = strtoull(name, NULL, 10);
  s->largest_job = job < JOBS_END && job > s->largest_job ? job : s->largest_job;
}

/* Looks at what lies in `dir`; a directory without a claimed attempt in it goes. */
static void sweep_dir(sweep *s, const char *dir, int level) {
  DIR *entries = opendir(dir);
  if (entries == NULL) {
    return;
  }
  for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
    if (!is_name_of(level, entry->d_name)) {
      continue;
    }
    if (level == 1) {
      note_job(s, entry->d_name);
    }
    buf path = {0};
    buf_printf(&path, "%s/%s", dir, entry->d_name);
    if (path.failed) {
      s->is_incomplete = true;
    } else if (level < ATTEMPT_LEVEL) {
      sweep_dir(s, path.data, level + 1);
      file_remove_empty_dir(path.data);
    } else if (!is_claimed(s, path.data + strlen(s->root) + 1)) {
      move_to_trash(s, path.data);
    }
    buf_reset(&path);
  }
  closedir(entries);
}

static hf_status claims_make(const executor *x, const block_ref *claims, size_t n, arena *a, sweep *out) {
  out->claims = arena_array(a, n, sizeof *out->claims);
  if (out->claims == NULL) {
    return HF_E_OUT_OF_MEMORY;
  }
  for (size_t i = 0; i < n; i++) {
    const char *dir = executor_attempt_dir(x, &claims[i], a);
    if (dir == NULL) {
      return HF_E_OUT_OF_MEMORY;
    }
    out->claims[i] = dir + strlen(x->place.path) + 1;
  }
  out->n_claims = n;
  if (n > 0) {
    qsort(out->claims, n, sizeof *out->claims, text_order);
  }
  out->root = x->place.path;
  out->trash = arena_printf(a, "%s/%s", x->place.path, WORK_DIR_TRASH_NAME);
  return out->trash == NULL ? HF_E_OUT_OF_MEMORY : HF_OK;
}

hf_status executor_sweep(executor *x, const block_ref *claims, size_t n_claims, uint64_t *largest_job,
                         hf_error *error) {
  if (!x->place.is_kept) {
    return HF_OK;
  }
  arena *a = arena_new();
  sweep s = {0};
  hf_status status = a == NULL ? HF_E_OUT_OF_MEMORY : claims_make(x, claims, n_claims, a, &s);
  if (status == HF_OK && file_make_dirs(s.trash, NULL) != HF_OK) {
    log_event(LOG_WARN, "executor", "sweep=skipped reason=no_trash_directory");
    s.trash = NULL; /* a full disk: the orphans wait for the next start */
  }
  if (status == HF_OK) {
    sweep_dir(&s, s.root, 0);
    log_event(LOG_INFO, "executor", "sweep=done claims=%zu moved=%zu", n_claims, s.n_moved);
    *largest_job = s.largest_job > *largest_job ? s.largest_job : *largest_job;
  }
  arena_free(a);
  return status == HF_OK && !s.is_incomplete
             ? HF_OK
             : error_set(error, HF_E_OUT_OF_MEMORY, "no memory to sweep the work directory");
}

void executor_empty_trash(executor *x) {
  buf path = {0};
  buf_printf(&path, "%s/%s", x->place.path, WORK_DIR_TRASH_NAME);
  if (!path.failed) {
    (void)file_remove_tree(path.data, NULL);
  }
  buf_reset(&path);
}
