/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening attempts, and the keeper that holds those of held results open: a
 * second reader finds the index decoded, the pages mapped and the checksums
 * compared. What is kept is used only while size, inode and times of every file
 * are as they were when it was mapped.
 */
#include "exchange/block_attempt.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct block_keeper {
  pthread_mutex_t lock;
  block_attempt *first; /* guarded by lock */
};

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read blocks");
}

/* ------------------------------------------------------------------ mappings */

void mapping_retain(mapping *m) {
  atomic_fetch_add_explicit(&m->references, 1, memory_order_relaxed);
}

void mapping_release(void *m) {
  mapping *file = m;
  if (file == NULL || atomic_fetch_sub_explicit(&file->references, 1, memory_order_acq_rel) != 1) {
    return;
  }
  if (file->bytes != NULL) {
    munmap((void *)file->bytes, file->length);
  }
  mem_free(file);
}

const char *block_path_tail(const char *path) {
  enum { PARTS = 4 };
  const char *at = path + strlen(path);
  for (int parts = 0; at > path; at--) {
    if (*at == '/' && ++parts == PARTS) {
      return at + 1;
    }
  }
  return path;
}

/* Maps an open file of which the index says that it has `length` bytes. */
static hf_status map_open(int fd, const char *path, size_t length, mapping *out, hf_error *error) {
  if (fstat(fd, &out->seen) != 0) {
    return error_set_errno(error, errno, HF_E_IO, "cannot read %s", path);
  }
  if ((uint64_t)out->seen.st_size < length) {
    return error_set(error, HF_E_BLOCK_MISSING,
                     "a block file is shorter than its index says: %lld of %zu bytes, %s",
                     (long long)out->seen.st_size, length, out->path);
  }
  void *bytes = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0);
  if (bytes == MAP_FAILED) {
    return error_set_errno(error, errno, HF_E_IO, "cannot map %s", path);
  }
  out->bytes = bytes;
  out->length = length;
  return HF_OK;
}

static hf_status mapping_open(const char *path, size_t length, mapping **out, hf_error *error) {
  const char *tail = block_path_tail(path);
  mapping *m = mem_zalloc(1, sizeof *m + strlen(tail) + 1);
  if (m == NULL) {
    return no_memory(error);
  }
  memcpy(m->path, tail, strlen(tail));
  atomic_init(&m->references, 1);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  hf_status status = HF_OK;
  if (fd < 0) {
    status = errno == ENOENT ? error_set(error, HF_E_BLOCK_MISSING, "a block file is missing: %s", m->path)
                             : error_set_errno(error, errno, HF_E_IO, "cannot open %s", path);
  } else {
    status = map_open(fd, path, length, m, error);
    close(fd);
  }
  if (status != HF_OK) {
    mapping_release(m);
    return status;
  }
  *out = m;
  return HF_OK;
}

/* ------------------------------------------------------------------ attempts */

void block_attempt_release(block_attempt *attempt) {
  if (attempt == NULL || atomic_fetch_sub_explicit(&attempt->references, 1, memory_order_acq_rel) != 1) {
    return;
  }
  for (uint32_t i = 0; attempt->files != NULL && i < attempt->index.n_files; i++) {
    mapping_release(attempt->files[i]);
  }
  for (size_t i = 0; attempt->is_loaded != NULL && i < attempt->index.n_dictionaries; i++) {
    if (attempt->is_loaded[i]) {
      attempt->values[i].values.release(&attempt->values[i].values);
    }
  }
  pthread_mutex_destroy(&attempt->lock);
  arena_free(attempt->memory);
  mem_free(attempt);
}

/* Tells of each file which of its columns have codes. */
static hf_status codings_init(block_attempt *attempt, hf_error *error) {
  const block_index *index = &attempt->index;
  arena *a = attempt->memory;
  attempt->code_bytes = arena_array(a, index->n_files, sizeof(uint8_t *));
  attempt->values = arena_array(a, index->n_dictionaries, sizeof *attempt->values);
  bool *is_loaded = arena_array(a, index->n_dictionaries, sizeof *is_loaded);
  if (attempt->code_bytes == NULL || attempt->values == NULL || is_loaded == NULL) {
    return no_memory(error);
  }
  attempt->is_loaded = is_loaded;
  uint8_t *of_file = NULL;
  for (size_t i = 0; i < index->n_dictionaries; i++) {
    const block_dictionary *d = &index->dictionaries[i];
    if (attempt->code_bytes[d->file] == NULL) {
      of_file = arena_array(a, index->columns.n_columns, sizeof *of_file);
      attempt->code_bytes[d->file] = of_file;
    }
    if (of_file == NULL) {
      return no_memory(error);
    }
    of_file[d->column] = d->code_bytes;
  }
  return HF_OK;
}

static hf_status map_files(block_attempt *attempt, hf_error *error) {
  const block_index *index = &attempt->index;
  for (size_t i = 0; i < index->n_blocks; i++) {
    uint32_t file = index->blocks[i].file;
    if (attempt->files[file] != NULL) {
      continue;
    }
    const char *path = arena_printf(attempt->memory, "%s/t%u.arrow", attempt->dir, file);
    if (path == NULL) {
      return no_memory(error);
    }
    HF_TRY(mapping_open(path, index->file_bytes[file], &attempt->files[file], error));
  }
  return HF_OK;
}

static hf_status attempt_load(block_attempt *attempt, hf_error *error) {
  attempt->memory = arena_new();
  if (attempt->memory == NULL) {
    return no_memory(error);
  }
  block_index *index = &attempt->index;
  HF_TRY(block_index_load(attempt->dir, attempt->memory, index, error));
  attempt->files = arena_array(attempt->memory, index->n_files, sizeof(mapping *));
  size_t n_parts = index->n_blocks * (index->columns.n_columns + 1); /* as many checksums are there already */
  attempt->is_verified = arena_array(attempt->memory, n_parts, sizeof *attempt->is_verified);
  if (attempt->files == NULL || attempt->is_verified == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < n_parts; i++) {
    atomic_init(&attempt->is_verified[i], false);
  }
  HF_TRY(codings_init(attempt, error));
  return map_files(attempt, error);
}

static hf_status attempt_new(const char *dir, block_attempt **out, hf_error *error) {
  block_attempt *attempt = mem_zalloc(1, sizeof *attempt + strlen(dir) + 1);
  if (attempt == NULL) {
    return no_memory(error);
  }
  memcpy(attempt->dir, dir, strlen(dir));
  atomic_init(&attempt->references, 1);
  pthread_mutex_init(&attempt->lock, NULL);
  hf_status status = attempt_load(attempt, error);
  if (status != HF_OK) {
    block_attempt_release(attempt);
    return status;
  }
  *out = attempt;
  return HF_OK;
}

/* -------------------------------------------------------------------- keeper */

block_keeper *block_keeper_new(void) {
  block_keeper *k = mem_zalloc(1, sizeof *k);
  if (k != NULL) {
    pthread_mutex_init(&k->lock, NULL);
  }
  return k;
}

static bool lies_in(const block_attempt *attempt, const char *dir) {
  size_t length = strlen(dir);
  return strncmp(attempt->dir, dir, length) == 0 &&
         (attempt->dir[length] == '\0' || attempt->dir[length] == '/');
}

/* Takes those in `dir` (NULL: all) off the list. REQUIRES(k->lock) */
static block_attempt *take_out_locked(block_keeper *k, const char *dir) {
  block_attempt *taken = NULL;
  block_attempt **at = &k->first;
  while (*at != NULL) {
    block_attempt *attempt = *at;
    if (dir == NULL || lies_in(attempt, dir)) {
      *at = attempt->next_kept;
      attempt->next_kept = taken;
      taken = attempt;
    } else {
      at = &attempt->next_kept;
    }
  }
  return taken;
}

void block_keeper_forget(block_keeper *k, const char *dir) {
  pthread_mutex_lock(&k->lock);
  block_attempt *taken = take_out_locked(k, dir);
  pthread_mutex_unlock(&k->lock);
  while (taken != NULL) {
    block_attempt *next = taken->next_kept;
    block_attempt_release(taken);
    taken = next;
  }
}

void block_keeper_free(block_keeper *k) {
  if (k != NULL) {
    block_keeper_forget(k, NULL);
    pthread_mutex_destroy(&k->lock);
    mem_free(k);
  }
}

static block_attempt *keeper_find(block_keeper *k, const char *dir) {
  pthread_mutex_lock(&k->lock);
  block_attempt *found = k->first;
  while (found != NULL && strcmp(found->dir, dir) != 0) {
    found = found->next_kept;
  }
  if (found != NULL) {
    atomic_fetch_add_explicit(&found->references, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&k->lock);
  return found;
}

/* Another thread may have kept the same attempt meanwhile: then both are good, and the older one goes when forgotten. */
static void keeper_add(block_keeper *k, block_attempt *attempt) {
  atomic_fetch_add_explicit(&attempt->references, 1, memory_order_relaxed);
  pthread_mutex_lock(&k->lock);
  attempt->next_kept = k->first;
  k->first = attempt;
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
    block_keeper_forget(keeper, dir);
    block_attempt_release(found);
  }
  HF_TRY(attempt_new(dir, out, error));
  if (keeper != NULL) {
    keeper_add(keeper, *out);
  }
  return HF_OK;
}
