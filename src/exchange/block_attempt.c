/* SPDX-License-Identifier: Apache-2.0 */
/* Opening attempts. What is held open between tasks is in block_keeper.c. */
#include "exchange/block_attempt.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

hf_status block_attempt_new(const char *dir, block_attempt **out, hf_error *error) {
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
