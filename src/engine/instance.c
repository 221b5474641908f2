/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening an instance, configuring and locking it. All that can be set before
 * DuckDB starts goes into its configuration, which costs nothing; only a time
 * zone and allowed directories need statements (0.5 ms). From the lock on, no
 * statement reaches files outside the allowed directories, loads code or changes
 * a setting, but for those of ALLOWED_LATER, which are ours.
 * Thread: the caller's. DuckDB's own threads inherit its signal mask.
 */
#include "engine_internal.h"

#include "base/buf.h"
#include "base/file.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The library that plan JSON, hash() and ENGINE_VECTOR_ROWS were measured with. */
#define PINNED_VERSION "v1.5.5"
#define DEFAULT_MEMORY_BYTES ((uint64_t)1 << 30)

typedef struct fixed_setting {
  const char *name, *value;
} fixed_setting;

/* What keeps the instance closed. */
static const fixed_setting closed_settings[] = {
    {"allow_community_extensions", "false"},
    {"allow_persistent_secrets", "false"},
    {"allow_unsigned_extensions", "false"},
    {"autoinstall_known_extensions", "false"},
    {"errors_as_json", "true"},
};

/* Everything that changes a result, at DuckDB's default: another version must not change it silently. */
static const fixed_setting result_settings[] = {
    {"arrow_large_buffer_size", "false"},
    {"arrow_lossless_conversion", "true"},
    {"arrow_output_list_view", "false"},
    {"arrow_output_version", "1.5"}, /* decimals as wide as DuckDB has them */
    {"default_collation", ""},
    {"default_null_order", "nulls_last"},
    {"default_order", "asc"},
    {"ieee_floating_point_ops", "true"},
    {"integer_division", "false"},
    {"max_expression_depth", "1000"},
    {"old_implicit_casting", "false"},
    {"order_by_non_integer_literal", "false"},
    {"preserve_insertion_order", "true"},
    {"produce_arrow_string_view", "false"},
    {"scalar_subquery_error_on_multiple_rows", "true"},
};

/* Set per connection or per statement by this folder, or by a witness, after the lock. User SQL holds no SET. */
#define ALLOWED_LATER                                                                                     \
  "['asof_loop_join_threshold', 'custom_profiling_settings', 'disabled_optimizers', 'enable_profiling', " \
  "'enable_progress_bar', 'enable_progress_bar_print']"

/* Known only once the instance runs (of an extension), or forgotten when it starts (measured with 1.5.5). */
static const char *const late_settings[] = {"TimeZone", "Calendar", "max_temp_directory_size"};

typedef struct opening {
  const engine_options *options;
  duckdb_config config;
  buf late; /* statements to run before the lock */
  hf_error *error;
} opening;

/* ------------------------------------------------------------------- settings */

static hf_status put(opening *o, const char *name, const char *value) {
  if (duckdb_set_config(o->config, name, value) == DuckDBSuccess) {
    return HF_OK;
  }
  return error_set(o->error, HF_E_SETTING_VALUE, "DuckDB does not take the setting: %s = %s", name, value);
}

static hf_status put_all(opening *o, const fixed_setting *settings, size_t n) {
  for (size_t i = 0; i < n; i++) {
    HF_TRY(put(o, settings[i].name, settings[i].value));
  }
  return HF_OK;
}

static hf_status put_size(opening *o, const char *name, const char *format, uint64_t value) {
  char text[40];
  snprintf(text, sizeof text, format, value);
  return put(o, name, text);
}

static bool is_late(const char *name) {
  for (size_t i = 0; i < sizeof late_settings / sizeof late_settings[0]; i++) {
    if (strcasecmp(name, late_settings[i]) == 0) {
      return true;
    }
  }
  return false;
}

static hf_status put_given(opening *o) {
  for (size_t i = 0; i < o->options->n_settings; i++) {
    const engine_setting *s = &o->options->settings[i];
    if (!is_late(s->name)) {
      HF_TRY(put(o, s->name, s->value));
      continue;
    }
    buf_text(&o->late, "SET GLOBAL ");
    buf_sql_name(&o->late, s->name);
    buf_text(&o->late, " = ");
    buf_sql_string(&o->late, s->value);
    buf_text(&o->late, "; ");
  }
  return HF_OK;
}

static hf_status put_resources(opening *o) {
  const engine_options *options = o->options;
  HF_TRY(put_size(o, "threads", "%" PRIu64, options->threads == 0 ? 1 : options->threads));
  HF_TRY(put_size(o, "memory_limit", "%" PRIu64 "B",
                  options->memory_bytes == 0 ? DEFAULT_MEMORY_BYTES : options->memory_bytes));
  HF_TRY(put(o, "temp_directory", options->spill_dir == NULL ? "" : options->spill_dir));
  HF_TRY(put(o, "autoload_known_extensions", options->extension_dir == NULL ? "false" : "true"));
  return options->extension_dir == NULL ? HF_OK : put(o, "extension_directory", options->extension_dir);
}

/* Instances that read files keep the footers of those that are unchanged, and older than ten seconds. */
static void write_caching(opening *o) {
  if (o->options->kind != ENGINE_PLANNER) {
    buf_text(&o->late, "SET GLOBAL parquet_metadata_cache = true; ");
  }
}

/* Planners have no allowed directory at all. */
static void write_allowed(opening *o) {
  const engine_options *options = o->options;
  const char *slot_dir = options->kind == ENGINE_SLOT ? options->slot_dir : NULL;
  size_t n = options->kind == ENGINE_PLANNER ? 0 : options->n_allowed_dirs;
  if (n == 0 && slot_dir == NULL) {
    return;
  }
  buf_text(&o->late, "SET allowed_directories = [");
  for (size_t i = 0; i < n; i++) {
    buf_text(&o->late, i == 0 ? "" : ", ");
    buf_sql_string(&o->late, options->allowed_dirs[i]);
  }
  if (slot_dir != NULL) {
    buf_text(&o->late, n == 0 ? "" : ", ");
    buf_sql_string(&o->late, slot_dir);
  }
  buf_text(&o->late, "]; ");
}

/* Locks before DuckDB starts when no statement needs to run, else as the last statements. */
static hf_status put_lock(opening *o) {
  write_caching(o);
  write_allowed(o);
  HF_TRY(put(o, "allowed_configs", ALLOWED_LATER));
  if (o->late.length == 0 && o->options->n_load == 0) {
    HF_TRY(put(o, "enable_external_access", "false"));
    return put(o, "lock_configuration", "true");
  }
  buf_text(&o->late, "SET enable_external_access = false; SET lock_configuration = true");
  return o->late.failed ? error_set(o->error, HF_E_OUT_OF_MEMORY, "no memory to open an instance") : HF_OK;
}

static hf_status configure(opening *o) {
  HF_TRY(put_all(o, closed_settings, sizeof closed_settings / sizeof closed_settings[0]));
  HF_TRY(put_all(o, result_settings, sizeof result_settings / sizeof result_settings[0]));
  HF_TRY(put_resources(o));
  HF_TRY(put_given(o));
  return put_lock(o);
}

/* ----------------------------------------------------------------------- open */

static hf_status load_extensions(opening *o, engine *e) {
  for (size_t i = 0; i < o->options->n_load; i++) {
    buf sql = {0};
    buf_text(&sql, "LOAD ");
    buf_sql_string(&sql, o->options->load[i]);
    hf_error found = {0};
    bool is_complete = !sql.failed;
    hf_status status = statement_run(e->main, buf_cstr(&sql), &found);
    buf_reset(&sql);
    if (!is_complete) {
      hf_error_reset(&found);
      return error_set(o->error, HF_E_OUT_OF_MEMORY, "no memory to open an instance");
    }
    if (status != HF_OK) {
      error_set(o->error, HF_E_UNSUPPORTED, "DuckDB cannot load its extension: %s", o->options->load[i]);
      error_hint(o->error,
                 "run tools/setup, or name the directory of extensions in HOLDFAST_EXTENSION_DIRECTORY");
      error_cause(o->error, found.message);
      hf_error_reset(&found);
      return HF_E_UNSUPPORTED;
    }
  }
  return HF_OK;
}

static hf_status start(opening *o, engine *e) {
  char *text = NULL;
  if (duckdb_open_ext(NULL, &e->database, o->config, &text) != DuckDBSuccess) {
    hf_status status = failure_set(o->error, text, 0);
    error_wrap(o->error, "opening an instance");
    duckdb_free(text);
    return status;
  }
  HF_TRY(statement_connect(e, &e->main, o->error));
  HF_TRY(load_extensions(o, e));
  if (o->late.length > 0 && statement_run(e->main, buf_cstr(&o->late), o->error) != HF_OK) {
    hf_error found = {0};
    error_move(&found, o->error);
    error_set(o->error, HF_E_SETTING_VALUE, "DuckDB does not take a setting: %s",
              found.message == NULL ? "unknown" : found.message);
    hf_error_reset(&found);
    return HF_E_SETTING_VALUE;
  }
  duckdb_connection_get_arrow_options(e->main, &e->arrow);
  return e->arrow == NULL ? error_set(o->error, HF_E_INTERNAL, "DuckDB gives no Arrow options") : HF_OK;
}

static hf_status prepare(opening *o, engine *e) {
  HF_TRY(scan_register(e, o->error));
  HF_TRY(blocks_register(e, o->error));
  if (e->kind != ENGINE_SLOT || o->options->slot_dir == NULL) {
    return HF_OK;
  }
  buf target = {0};
  buf_printf(&target, "%s/out", o->options->slot_dir);
  e->copy_target = buf_take(&target);
  if (e->copy_target == NULL) {
    return error_set(o->error, HF_E_OUT_OF_MEMORY, "no memory to open an instance");
  }
  HF_TRY(sink_register(e, o->error));
  return task_connect(e, &e->spare, o->error);
}

static hf_status check_library(hf_error *error) {
  if (strcmp(duckdb_library_version(), PINNED_VERSION) == 0 && duckdb_vector_size() == ENGINE_VECTOR_ROWS) {
    return HF_OK;
  }
  error_set(error, HF_E_VERSION, "libduckdb is %s with vectors of %" PRIu64 " rows, expected %s with %d",
            duckdb_library_version(), (uint64_t)duckdb_vector_size(), PINNED_VERSION, ENGINE_VECTOR_ROWS);
  error_hint(error, "run tools/setup, or point DUCKDB_ROOT at libduckdb " PINNED_VERSION);
  return HF_E_VERSION;
}

hf_status engine_open(const engine_options *options, engine **out, hf_error *error) {
  HF_TRY(check_library(error));
  engine *e = mem_zalloc(1, sizeof *e);
  opening o = {.options = options, .error = error};
  if (e == NULL || duckdb_create_config(&o.config) != DuckDBSuccess) {
    mem_free(e);
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to open an instance");
  }
  e->kind = options->kind;
  pthread_mutex_init(&e->lock, NULL);
  hf_status status = configure(&o);
  if (status == HF_OK) {
    status = start(&o, e);
  }
  if (status == HF_OK) {
    status = prepare(&o, e);
  }
  duckdb_destroy_config(&o.config);
  buf_reset(&o.late);
  if (status != HF_OK) {
    engine_close(e);
    return status;
  }
  *out = e;
  return HF_OK;
}

void engine_close(engine *e) {
  if (e == NULL) {
    return;
  }
  duckdb_destroy_prepare(&e->parsing);
  duckdb_destroy_arrow_options(&e->arrow);
  duckdb_disconnect(&e->spare);
  duckdb_disconnect(&e->planning);
  duckdb_disconnect(&e->describing);
  duckdb_disconnect(&e->main);
  duckdb_close(&e->database);
  pthread_mutex_destroy(&e->lock);
  if (e->copy_target != NULL) {
    file_remove_empty_dir(e->copy_target);
  }
  mem_free(e->copy_target);
  mem_free(e);
}

const char *engine_library_version(void) {
  return duckdb_library_version();
}

/* Below the directory of libduckdb, links resolved: as installed, and as third_party/ has it. */
static const char *const extension_places[] = {"extensions", "../../duckdb-extensions"};

const char *engine_extension_dir(arena *a) {
  const char *told = getenv("HOLDFAST_EXTENSION_DIRECTORY");
  if (told != NULL && told[0] != '\0') {
    return arena_strdup(a, told);
  }
  void *symbol = dlsym(RTLD_DEFAULT, "duckdb_library_version");
  Dl_info info;
  char library[PATH_MAX];
  if (symbol == NULL || dladdr(symbol, &info) == 0 || info.dli_fname == NULL ||
      realpath(info.dli_fname, library) == NULL) {
    return NULL;
  }
  *strrchr(library, '/') = '\0';
  for (size_t i = 0; i < sizeof extension_places / sizeof extension_places[0]; i++) {
    char *path = arena_printf(a, "%s/%s", library, extension_places[i]);
    if (path != NULL && access(path, F_OK) == 0) {
      return path;
    }
  }
  return NULL;
}
