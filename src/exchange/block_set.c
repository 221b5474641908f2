/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the blocks of some locations. Reading them is in input.c and stream.c. */
#include "exchange/block_set.h"

#include "arrow/ipc.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read blocks");
}

void mapping_retain(mapping *m) {
  atomic_fetch_add_explicit(&m->references, 1, memory_order_relaxed);
}

void mapping_release(void *m) {
  mapping *file = m;
  if (file == NULL || atomic_fetch_sub_explicit(&file->references, 1, memory_order_acq_rel) != 1) {
    return;
  }
  if (file->bytes != NULL) {
    munmap((void *)(uintptr_t)file->bytes, file->length);
  }
  mem_free(file);
}

/* The end of a path that names job, stage, attempt and file. */
static const char *path_tail(const char *path) {
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
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return error_set_errno(error, errno, HF_E_IO, "cannot read %s", path);
  }
  if ((uint64_t)info.st_size < length) {
    return error_set(error, HF_E_BLOCK_MISSING,
                     "a block file is shorter than its index says: %lld of %zu bytes, %s",
                     (long long)info.st_size, length, out->path);
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
  const char *tail = path_tail(path);
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

static bool is_wanted(const block_location *location, uint32_t partition) {
  return location->partition_count == 0 ||
         (partition >= location->partition_first &&
          partition - location->partition_first < location->partition_count);
}

/* One location while it is opened. */
typedef struct opening {
  const block_location *location;
  block_index index;
  mapping **files; /* by file of the index; NULL where none of its blocks is wanted */
} opening;

static hf_status map_file(block_set *set, opening *o, uint32_t file, hf_error *error) {
  if (o->files[file] != NULL) {
    return HF_OK;
  }
  const char *path = arena_printf(set->memory, "%s/t%u.arrow", o->location->dir, file);
  if (path == NULL) {
    return no_memory(error);
  }
  return mapping_open(path, o->index.file_bytes[file], &o->files[file], error);
}

static hf_status add_block(block_set *set, opening *o, const block *b, hf_error *error) {
  HF_TRY(map_file(set, o, b->file, error));
  set_block *added = &set->blocks[set->n_blocks++];
  added->file = o->files[b->file];
  added->offset = b->offset;
  added->bytes = b->bytes;
  added->rows = b->rows;
  added->checksum = b->checksum;
  atomic_init(&added->is_verified, false);
  set->rows += b->rows;
  return HF_OK;
}

static hf_status check_alike(const block_set *set, const opening *o, const struct ArrowSchema *arrow_schema,
                             hf_error *error) {
  bool is_alike = arrow_schema->n_children == (int64_t)o->index.columns.n_columns;
  if (set->arrow_schema.release != NULL) {
    is_alike = is_alike && o->index.columns.n_columns == set->columns.n_columns &&
               arrow_schemas_alike(&set->arrow_schema, arrow_schema);
  }
  return is_alike ? HF_OK
                  : error_set(error, HF_E_BLOCK_CORRUPT,
                              "blocks that are read together differ in their columns: %s",
                              path_tail(o->location->dir));
}

/* The first location gives the columns; those of the others must be like them. */
static hf_status take_schema(block_set *set, const opening *o, hf_error *error) {
  struct ArrowSchema arrow_schema = {0};
  ipc_cursor cursor = {.bytes = o->index.arrow_schema, .left = o->index.arrow_schema_bytes};
  HF_TRY(ipc_read_schema(&cursor, &arrow_schema, error));
  hf_status status = check_alike(set, o, &arrow_schema, error);
  if (status == HF_OK && set->arrow_schema.release == NULL) {
    set->arrow_schema = arrow_schema;
    set->columns = o->index.columns;
    return HF_OK;
  }
  arrow_schema.release(&arrow_schema);
  return status;
}

static hf_status load(block_set *set, opening *openings, const block_location *locations, size_t n_locations,
                      hf_error *error) {
  size_t n_blocks = 0;
  size_t n_files = 0;
  for (size_t i = 0; i < n_locations; i++) {
    opening *o = &openings[i];
    o->location = &locations[i];
    HF_TRY(block_index_load(o->location->dir, set->memory, &o->index, error));
    HF_TRY(take_schema(set, o, error));
    n_blocks += o->index.n_blocks;
    n_files += o->index.n_files;
  }
  set->blocks = arena_array(set->memory, n_blocks, sizeof *set->blocks);
  set->files = arena_array(set->memory, n_files, sizeof *set->files);
  return set->blocks == NULL || set->files == NULL ? no_memory(error) : HF_OK;
}

static hf_status open_locations(block_set *set, const block_location *locations, size_t n_locations,
                                hf_error *error) {
  opening *openings = arena_array(set->memory, n_locations, sizeof *openings);
  if (openings == NULL) {
    return no_memory(error);
  }
  HF_TRY(load(set, openings, locations, n_locations, error));
  for (size_t i = 0; i < n_locations; i++) {
    opening *o = &openings[i];
    o->files = set->files + set->n_files;
    set->n_files += o->index.n_files;
    for (size_t k = 0; k < o->index.n_blocks; k++) {
      if (is_wanted(o->location, o->index.blocks[k].partition)) {
        HF_TRY(add_block(set, o, &o->index.blocks[k], error));
      }
    }
  }
  return HF_OK;
}

hf_status block_set_open(const block_location *locations, size_t n_locations, block_set *out,
                         hf_error *error) {
  *out = (block_set){.memory = arena_new()};
  hf_status status = HF_OK;
  if (out->memory == NULL) {
    status = no_memory(error);
  } else if (n_locations == 0) {
    status = error_set(error, HF_E_INVALID_ARGUMENT, "there is no location to read blocks from");
  } else {
    status = open_locations(out, locations, n_locations, error);
  }
  if (status != HF_OK) {
    block_set_close(out);
  }
  return status;
}

void block_set_close(block_set *set) {
  for (size_t i = 0; i < set->n_files; i++) {
    mapping_release(set->files[i]);
  }
  if (set->arrow_schema.release != NULL) {
    set->arrow_schema.release(&set->arrow_schema);
  }
  arena_free(set->memory);
  memset(set, 0, sizeof *set);
}

hf_status block_set_blame(const set_block *b, hf_status status, hf_error *error) {
  if (status == HF_E_BLOCK_CORRUPT) {
    error_wrap(error, "the block at %llu of %s", (unsigned long long)b->offset, b->file->path);
  }
  return status;
}

hf_status block_set_verify(set_block *b, hf_error *error) {
  if (atomic_load_explicit(&b->is_verified, memory_order_acquire)) {
    return HF_OK;
  }
  uint64_t found = XXH3_64bits(b->file->bytes + b->offset, b->bytes);
  if (found != b->checksum) {
    return error_set(error, HF_E_BLOCK_CORRUPT,
                     "a block does not match its checksum: the %llu bytes at %llu of %s",
                     (unsigned long long)b->bytes, (unsigned long long)b->offset, b->file->path);
  }
  atomic_store_explicit(&b->is_verified, true, memory_order_release);
  return HF_OK;
}
