/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue: resolved sources by what they were asked as and by path, size
 * and mtime of every file, so a changed file is another source. Discovery runs
 * on one engine, opened when first needed; its users take turns.
 *
 * Locks: `turn` is held while the engine works, `lock` only to look into the
 * table. `lock` is taken inside `turn`, never the other way round.
 * Thread: any.
 */
#include "source/source_internal.h"

#include "source/discover.h"

#include "base/mem.h"

#include <string.h>
#include <xxhash.h>

/* ----------------------------------------------------------------- sources */

source *source_retain(source *s) {
  atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
  return s;
}

void source_release(source *s) {
  if (s != NULL && atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) == 1) {
    arena_free(s->arena);
    mem_free(s);
  }
}

const schema *source_columns(const source *s) {
  return &s->columns;
}

uint64_t source_rows(const source *s, bool *exact) {
  if (exact != NULL) {
    *exact = s->rows_exact;
  }
  return s->rows;
}

uint64_t source_bytes(const source *s) {
  return s->bytes;
}

size_t source_n_files(const source *s) {
  return s->n_files;
}

const source_file *source_files(const source *s) {
  return s->files;
}

const char *source_reader_text(const source *s) {
  return s->reader;
}

/* --------------------------------------------------------------- catalogue */

static bool copy_options(source_catalog *c, const source_catalog_options *from) {
  const char **dirs = arena_array(c->arena, from->n_allowed_dirs + 1, sizeof *dirs);
  bool complete = dirs != NULL;
  for (size_t i = 0; complete && i < from->n_allowed_dirs; i++) {
    dirs[i] = arena_strdup(c->arena, from->allowed_dirs[i]);
    complete = dirs[i] != NULL;
  }
  c->options = (source_catalog_options){.allowed_dirs = dirs,
                                        .n_allowed_dirs = from->n_allowed_dirs,
                                        .refused_dir = arena_strdup(c->arena, from->refused_dir),
                                        .extension_dir = arena_strdup(c->arena, from->extension_dir)};
  return complete && (from->refused_dir == NULL || c->options.refused_dir != NULL) &&
         (from->extension_dir == NULL || c->options.extension_dir != NULL);
}

hf_status source_catalog_new(const source_catalog_options *options, source_catalog **out, hf_error *error) {
  source_catalog *c = mem_zalloc(1, sizeof *c);
  if (c == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the catalogue of sources");
  }
  pthread_mutex_init(&c->turn, NULL);
  pthread_mutex_init(&c->lock, NULL);
  c->arena = arena_new();
  if (c->arena == NULL || !copy_options(c, options)) {
    source_catalog_free(c);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the catalogue of sources");
  }
  *out = c;
  return HF_OK;
}

void source_catalog_free(source_catalog *c) {
  if (c == NULL) {
    return;
  }
  for (size_t i = 0; i < MOST_REMEMBERED; i++) {
    source_release(c->table[i].source);
  }
  engine_close(c->engine);
  pthread_mutex_destroy(&c->turn);
  pthread_mutex_destroy(&c->lock);
  arena_free(c->arena);
  mem_free(c);
}

/* --------------------------------------------------------------- remembering */

static void hash_text(XXH3_state_t *state, const char *text) {
  XXH3_128bits_update(state, text, strlen(text) + 1);
}

static hf_status key_of(const source_request *request, const listing *files, source_key *out,
                        hf_error *error) {
  XXH3_state_t *state = XXH3_createState();
  if (state == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to look a source up");
  }
  XXH3_128bits_reset(state);
  XXH3_128bits_update(state, &request->format, sizeof request->format);
  for (size_t i = 0; i < request->n_options; i++) {
    hash_text(state, request->options[i].name);
    hash_text(state, request->options[i].value_sql);
  }
  for (size_t i = 0; i < files->n_files; i++) {
    const source_file *file = &files->files[i];
    hash_text(state, file->path);
    hash_text(state, files->written[i]);
    XXH3_128bits_update(state, &file->bytes, sizeof file->bytes);
    XXH3_128bits_update(state, &file->mtime_ns, sizeof file->mtime_ns);
    XXH3_128bits_update(state, &file->ctime_ns, sizeof file->ctime_ns);
    XXH3_128bits_update(state, &file->inode, sizeof file->inode);
  }
  XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  *out = (source_key){hash.low64, hash.high64};
  return HF_OK;
}

/* Returns a reference, or NULL. */
static source *recall(source_catalog *c, const source_key *key) {
  source *found = NULL;
  pthread_mutex_lock(&c->lock);
  for (size_t i = 0; found == NULL && i < MOST_REMEMBERED; i++) {
    const remembered *entry = &c->table[i];
    if (entry->source != NULL && entry->key.low == key->low && entry->key.high == key->high) {
      found = source_retain(entry->source);
    }
  }
  pthread_mutex_unlock(&c->lock);
  return found;
}

static void remember(source_catalog *c, const source_key *key, source *s) {
  pthread_mutex_lock(&c->lock);
  remembered *entry = &c->table[c->next];
  source *forgotten = entry->source;
  *entry = (remembered){*key, source_retain(s)};
  c->next = (c->next + 1) % MOST_REMEMBERED;
  pthread_mutex_unlock(&c->lock);
  source_release(forgotten);
}

/* ---------------------------------------------------------------- resolving */

hf_status catalog_open_engine(source_catalog *c, hf_error *error) {
  if (c->engine != NULL) {
    return HF_OK;
  }
  engine_options options = {.kind = ENGINE_DISCOVERER,
                            .threads = 1,
                            .allowed_dirs = c->options.allowed_dirs,
                            .n_allowed_dirs = c->options.n_allowed_dirs,
                            .extension_dir = c->options.extension_dir};
  return engine_open(&options, &c->engine, error);
}

/* Takes the arena that the listing lies in, also on failure. */
static hf_status source_make(source_catalog *c, const source_request *request, const listing *files, arena *a,
                             source **out, hf_error *error) {
  discovery d = {.engine = c->engine, .request = request, .files = files, .arena = a, .error = error};
  source *s = mem_zalloc(1, sizeof *s);
  hf_status status = s == NULL ? discover_out_of_memory(&d) : discover(&d);
  const char *reader = status == HF_OK ? arena_strndup(a, buf_cstr(&d.reader), d.reader.length) : NULL;
  buf_reset(&d.reader);
  if (status == HF_OK && reader == NULL) {
    status = discover_out_of_memory(&d);
  }
  if (status != HF_OK) {
    mem_free(s);
    arena_free(a);
    return status;
  }
  *s = (source){.arena = a,
                .columns = d.columns,
                .rows = d.rows,
                .rows_exact = d.rows_exact,
                .bytes = files->bytes,
                .n_files = files->n_files,
                .files = files->files,
                .reader = reader};
  atomic_init(&s->references, 1);
  *out = s;
  return HF_OK;
}

/* Waits for the turn and discovers, unless somebody has meanwhile. Takes the arena. */
static hf_status resolve_in_turn(source_catalog *c, const source_request *request, const listing *files,
                                 arena *a, source **out, hf_error *error) {
  source_key key;
  hf_status status = key_of(request, files, &key, error);
  source *found = status == HF_OK ? recall(c, &key) : NULL;
  if (status != HF_OK || found != NULL) {
    arena_free(a);
    *out = found;
    return status;
  }
  pthread_mutex_lock(&c->turn);
  found = recall(c, &key);
  status = found == NULL ? catalog_open_engine(c, error) : HF_OK;
  if (found != NULL || status != HF_OK) {
    arena_free(a);
  } else {
    status = source_make(c, request, files, a, &found, error);
    if (status == HF_OK) {
      remember(c, &key, found);
    }
  }
  pthread_mutex_unlock(&c->turn);
  *out = found;
  return status;
}

/* Copies what the listing saw, in `a`. */
static hf_status versions_copy(const listing *from, arena *a, source_versions *out, hf_error *error) {
  size_t n = from->n_files + from->n_others;
  source_version *versions = arena_array(a, n, sizeof *versions);
  bool is_complete = versions != NULL;
  for (size_t i = 0; is_complete && i < n; i++) {
    if (i < from->n_files) {
      versions[i] = (source_version){from->files[i].path, from->files[i].bytes, from->files[i].mtime_ns};
    } else {
      versions[i] = from->others[i - from->n_files];
    }
    versions[i].path = arena_strdup(a, versions[i].path);
    is_complete = versions[i].path != NULL;
  }
  *out = (source_versions){versions, n};
  return is_complete ? HF_OK : error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the versions of a source");
}

hf_status source_resolve_versions(source_catalog *c, const source_request *request, arena *to,
                                  source_versions *versions, source **out, hf_error *error) {
  for (size_t i = 0; i < request->n_options; i++) {
    HF_TRY(source_option_check(request->format, request->options[i].name, error));
  }
  arena *a = arena_new();
  listing files;
  source *found = NULL;
  if (a == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a source");
  }
  hf_status status = listing_make(&c->options, request, a, &files, error);
  if (status == HF_OK && to != NULL) {
    status = versions_copy(&files, to, versions, error);
  }
  if (status != HF_OK) {
    arena_free(a);
    return status;
  }
  HF_TRY(resolve_in_turn(c, request, &files, a, &found, error));
  *out = found;
  return HF_OK;
}

hf_status source_resolve(source_catalog *c, const source_request *request, source **out, hf_error *error) {
  return source_resolve_versions(c, request, NULL, NULL, out, error);
}

hf_status source_target(const source_catalog *c, const char *path, arena *a, const char **out,
                        hf_error *error) {
  return listing_target(&c->options, path, a, out, error);
}
