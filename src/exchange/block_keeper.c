/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper holds attempts of held results open: a second reader finds the index
 * decoded, the pages mapped and the checksums compared. What is kept is used only
 * while size, inode and times of every file are as they were when it was mapped.
 * Attempts are found by the directory that they lie in, that of their stage, so
 * that thousands of held results cost a reader nothing.
 * Thread: any.
 */
#include "exchange/block_attempt.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { FIRST_BUCKETS = 64 }; /* a power of two */

struct block_keeper {
  pthread_mutex_t lock;
  size_t n_kept;           /* guarded by lock */
  size_t n_buckets;        /* guarded by lock; a power of two */
  block_attempt **buckets; /* guarded by lock: lists by the hash of the stage's directory */
};

/* The part of an attempt's directory that is its stage's. */
static size_t stage_length(const char *dir) {
  const char *slash = strrchr(dir, '/');
  return slash == NULL ? 0 : (size_t)(slash - dir);
}

/* REQUIRES(k->lock) */
static block_attempt **bucket_locked(const block_keeper *k, const char *stage_dir, size_t length) {
  return &k->buckets[XXH3_64bits(stage_dir, length) & (k->n_buckets - 1)];
}

block_keeper *block_keeper_new(void) {
  block_keeper *k = mem_zalloc(1, sizeof *k);
  block_attempt **buckets = mem_zalloc(FIRST_BUCKETS, sizeof(block_attempt *));
  if (k == NULL || buckets == NULL) {
    mem_free(k);
    mem_free(buckets);
    return NULL;
  }
  pthread_mutex_init(&k->lock, NULL);
  k->buckets = buckets;
  k->n_buckets = FIRST_BUCKETS;
  return k;
}

static void release_all(block_attempt *attempts) {
  while (attempts != NULL) {
    block_attempt *next = attempts->next_kept;
    block_attempt_release(attempts);
    attempts = next;
  }
}

/* Which attempts are meant: one, by its own directory, or all in a stage's. */
static bool is_meant(const block_attempt *attempt, const char *dir, bool is_stage) {
  size_t length = strlen(dir);
  return is_stage ? stage_length(attempt->dir) == length && memcmp(attempt->dir, dir, length) == 0
                  : strcmp(attempt->dir, dir) == 0;
}

static void forget(block_keeper *k, const char *dir, bool is_stage) {
  block_attempt *taken = NULL;
  pthread_mutex_lock(&k->lock);
  block_attempt **at = bucket_locked(k, dir, is_stage ? strlen(dir) : stage_length(dir));
  while (*at != NULL) {
    block_attempt *attempt = *at;
    if (is_meant(attempt, dir, is_stage)) {
      *at = attempt->next_kept;
      attempt->next_kept = taken;
      taken = attempt;
      k->n_kept--;
    } else {
      at = &attempt->next_kept;
    }
  }
  pthread_mutex_unlock(&k->lock);
  release_all(taken);
}

void block_keeper_forget(block_keeper *k, const char *stage_dir) {
  forget(k, stage_dir, true);
}

void block_keeper_free(block_keeper *k) {
  if (k == NULL) {
    return;
  }
  for (size_t i = 0; i < k->n_buckets; i++) {
    release_all(k->buckets[i]);
  }
  pthread_mutex_destroy(&k->lock);
  mem_free(k->buckets);
  mem_free(k);
}

static block_attempt *keeper_find(block_keeper *k, const char *dir) {
  pthread_mutex_lock(&k->lock);
  block_attempt *found = *bucket_locked(k, dir, stage_length(dir));
  while (found != NULL && strcmp(found->dir, dir) != 0) {
    found = found->next_kept;
  }
  if (found != NULL) {
    atomic_fetch_add_explicit(&found->references, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&k->lock);
  return found;
}

/* Without memory the lists get longer. REQUIRES(k->lock) */
static void grow_locked(block_keeper *k) {
  size_t n_before = k->n_buckets;
  block_attempt **before = k->buckets;
  block_attempt **buckets = mem_zalloc(n_before * 4, sizeof(block_attempt *));
  if (buckets == NULL) {
    return;
  }
  k->buckets = buckets;
  k->n_buckets = n_before * 4;
  for (size_t i = 0; i < n_before; i++) {
    while (before[i] != NULL) {
      block_attempt *attempt = before[i];
      before[i] = attempt->next_kept;
      block_attempt **to = bucket_locked(k, attempt->dir, stage_length(attempt->dir));
      attempt->next_kept = *to;
      *to = attempt;
    }
  }
  mem_free(before);
}

/* Another thread may have kept the same attempt meanwhile: then both are good, and the older one goes when forgotten. */
static void keeper_add(block_keeper *k, block_attempt *attempt) {
  atomic_fetch_add_explicit(&attempt->references, 1, memory_order_relaxed);
  pthread_mutex_lock(&k->lock);
  if (++k->n_kept > k->n_buckets) {
    grow_locked(k);
  }
  block_attempt **to = bucket_locked(k, attempt->dir, stage_length(attempt->dir));
  attempt->next_kept = *to;
  *to = attempt;
  pthread_mutex_unlock(&k->lock);
}

static bool is_same_time(const struct timespec *a, const struct timespec *b) {
  return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_unchanged(const block_attempt *attempt) {
  for (uint32_t i = 0; i < attempt->index.n_files; i++) {
    const mapping *file = attempt->files[i];
    char path[4096];
    struct stat now;
    if (file == NULL) {
      continue;
    }
    int length = snprintf(path, sizeof path, "%s/t%u.arrow", attempt->dir, i);
    if (length < 0 || (size_t)length >= sizeof path || stat(path, &now) != 0 ||
        now.st_ino != file->seen.st_ino || now.st_dev != file->seen.st_dev ||
        now.st_size != file->seen.st_size || !is_same_time(&now.st_mtim, &file->seen.st_mtim) ||
        !is_same_time(&now.st_ctim, &file->seen.st_ctim)) {
      return false;
    }
  }
  return true;
}

hf_status block_attempt_open(const char *dir, block_keeper *keeper, block_attempt **out, hf_error *error) {
  block_attempt *found = keeper == NULL ? NULL : keeper_find(keeper, dir);
  if (found != NULL && is_unchanged(found)) {
    *out = found;
    return HF_OK;
  }
  if (found != NULL) {
    forget(keeper, dir, false);
    block_attempt_release(found);
  }
  HF_TRY(block_attempt_new(dir, out, error));
  if (keeper != NULL) {
    keeper_add(keeper, *out);
  }
  return HF_OK;
}
