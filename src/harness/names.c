/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of files, streams and queries: a relation each, and a cache node over it for
 * runs with held or inlined inputs. Single-node DuckDB gets a view or a table of each.
 * Thread: one at a time.
 */
#include "harness_internal.h"

#include "base/file.h"
#include "base/utf8.h"

#include <string.h>
#include <strings.h>

/* Jobs of streams' rows; those of queries count from 1. */
#define STREAM_JOBS ((uint64_t)1 << 62)
/* At least so many blocks, about, are made of a stream's rows. */
enum { STREAM_BLOCKS = 16 };

harness_name *harness_name_of(const hf_harness *h, const uuid *id) {
  harness_name *n = h->names;
  while (n != NULL && !uuid_equal(&n->cache_id, id) && !uuid_equal(&n->local_id, id)) {
    n = n->next;
  }
  return n;
}

static harness_name *name_find(const hf_harness *h, const char *text) {
  harness_name *n = h->names;
  while (n != NULL && (n->is_dropped || strcasecmp(n->name, text) != 0)) {
    n = n->next;
  }
  return n;
}

static const relation *lookup(void *context, const char *text) {
  const query_plan *p = context;
  const harness_name *n = name_find(p->h, text);
  return n == NULL ? NULL : p->config->hold == HF_HARNESS_HOLD_NONE ? n->plain : n->cached;
}

static const char *name_at(void *context, size_t i) {
  const query_plan *p = context;
  for (const harness_name *n = p->h->names; n != NULL; n = n->next) {
    if (!n->is_dropped && i-- == 0) {
      return n->name;
    }
  }
  return NULL;
}

relation_names harness_names(query_plan *p) {
  return (relation_names){.lookup = lookup, .name_at = name_at, .context = p};
}

static void name_free(harness_name *n) {
  if (n->plain != NULL) {
    relation_release(n->plain);
  }
  if (n->cached != NULL) {
    relation_release(n->cached);
  }
  arena_free(n->memory);
}

static void name_remove(hf_harness *h, harness_name *n) {
  harness_name **at = &h->names;
  while (*at != n) {
    at = &(*at)->next;
  }
  *at = n->next;
  hold_drop(h, n);
  if (!uuid_is_none(&n->local_id)) {
    job_remove(h, n->local.refs[0].job.value);
  }
  name_free(n);
}

static hf_status name_new(const char *text, harness_name **out, hf_error *error) {
  if (text == NULL || text[0] == '\0') {
    return error_set(error, HF_E_INVALID_ARGUMENT, "a name is empty");
  }
  if (!utf8_is_right(text)) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "a name is not UTF-8");
  }
  arena *a = arena_new();
  harness_name *n = a == NULL ? NULL : arena_alloc(a, sizeof *n);
  if (n == NULL || (n->name = arena_strdup(a, text)) == NULL) {
    arena_free(a);
    return harness_no_memory(error);
  }
  n->shown = n->name;
  n->memory = a;
  n->cache_id = uuid_new();
  *out = n;
  return HF_OK;
}

/* ------------------------------------------------------- names of single-node DuckDB */

/* Appends the name of what is shown to `sql`, runs it with what follows, and resets it. */
static hf_status run_about(const hf_harness *h, const harness_name *n, buf *sql, const char *rest,
                           hf_error *error) {
  buf_sql_name(sql, n->shown);
  buf_text(sql, rest);
  hf_status status = sql->failed ? harness_no_memory(error)
                                 : engine_execute(witness_engine(h->witness), buf_cstr(sql), error);
  buf_reset(sql);
  return status;
}

/* What single-node DuckDB has of a name: a view, or a table of its blocks. */
static hf_status tell_witness(const hf_harness *h, const harness_name *n, hf_error *error) {
  buf sql = {0};
  if (n->body != NULL) {
    const char *rest = arena_printf(n->memory, " AS %s", n->body);
    buf_text(&sql, "CREATE OR REPLACE VIEW ");
    return rest == NULL ? harness_no_memory(error) : run_about(h, n, &sql, rest, error);
  }
  arena *a = arena_new();
  const char *dir = a == NULL ? NULL : harness_dir(h, &n->local.refs[0], a);
  hf_status status =
      dir == NULL ? harness_no_memory(error) : witness_take_blocks(h->witness, n->shown, dir, error);
  arena_free(a);
  return status;
}

/* Whether a view that can be named may be over it. */
static bool has_query_over(const hf_harness *h, const harness_name *n) {
  const harness_name *newer = h->names;
  while (newer != n && (newer->is_dropped || !newer->is_query)) {
    newer = newer->next;
  }
  return newer != n;
}

/* A view's body, in which the name means what has another name now. */
static hf_status bind_body(harness_name *view, const harness_name *below, hf_error *error) {
  buf body = {0};
  buf_text(&body, "WITH ");
  buf_sql_name(&body, below->name);
  buf_text(&body, " AS (FROM ");
  buf_sql_name(&body, below->shown);
  buf_printf(&body, ") SELECT * FROM (%s\n)", view->body);
  view->body = body.failed ? NULL : arena_strdup(view->memory, buf_cstr(&body));
  buf_reset(&body);
  return view->body == NULL ? harness_no_memory(error) : HF_OK;
}

/* All views that are newer, the oldest first: they may be over each other. */
static hf_status bind_newer(hf_harness *h, harness_name *newer, const harness_name *below, hf_error *error) {
  if (newer == below) {
    return HF_OK;
  }
  HF_TRY(bind_newer(h, newer->next, below, error));
  if (!newer->is_query) {
    return HF_OK;
  }
  HF_TRY(bind_body(newer, below, error));
  return newer->is_told ? tell_witness(h, newer, error) : HF_OK;
}

/* Views are over what a name meant when they were made: it stays, under a name that nobody writes. */
static hf_status hide(hf_harness *h, harness_name *n, hf_error *error) {
  buf sql = {0}, rest = {0};
  const char *shown =
      arena_printf(n->memory, "%s (dropped %llu)", n->name, (unsigned long long)++h->n_dropped);
  if (shown == NULL) {
    return harness_no_memory(error);
  }
  buf_text(&rest, " RENAME TO ");
  buf_sql_name(&rest, shown);
  buf_text(&sql, n->body == NULL ? "ALTER TABLE " : "ALTER VIEW ");
  hf_status status = rest.failed ? harness_no_memory(error) : run_about(h, n, &sql, buf_cstr(&rest), error);
  buf_reset(&rest);
  HF_TRY(status);
  n->shown = shown;
  n->is_dropped = true;
  hold_drop(h, n);
  return bind_newer(h, h->names, n, error);
}

static hf_status forget(hf_harness *h, harness_name *n, hf_error *error) {
  buf sql = {0};
  buf_text(&sql, n->body == NULL ? "DROP TABLE " : "DROP VIEW ");
  hf_status status = run_about(h, n, &sql, "", error);
  name_remove(h, n);
  return status;
}

/* Dropped names that no view can be over any more. */
static hf_status forget_unseen(hf_harness *h, hf_error *error) {
  for (harness_name *n = h->names, *next = NULL; n != NULL; n = next) {
    next = n->next;
    if (n->is_dropped && !has_query_over(h, n)) {
      HF_TRY(forget(h, n, error));
    }
  }
  return HF_OK;
}

static hf_status drop(hf_harness *h, harness_name *n, hf_error *error) {
  harness_forget_answer(h);
  HF_TRY(has_query_over(h, n) ? hide(h, n, error) : forget(h, n, error));
  return forget_unseen(h, error);
}

hf_status hf_harness_drop(hf_harness *h, const char *name, hf_error *error) {
  harness_name *n = h == NULL || name == NULL ? NULL : name_find(h, name);
  return n != NULL ? drop(h, n, error)
                   : error_set(error, HF_E_TABLE_NOT_FOUND, "the harness has no such name: %s",
                               name == NULL ? "NULL" : name);
}

/* Takes the name, also on failure. */
static hf_status name_add(hf_harness *h, harness_name *n, hf_error *error) {
  hf_status status =
      relation_from_cache(&n->cache_id, &h->session, n->plain, "MEMORY_AND_DISK", &n->cached, error);
  harness_name *old = name_find(h, n->name);
  harness_forget_answer(h);
  n->next = h->names;
  h->names = n;
  if (status == HF_OK && old != NULL) {
    status = drop(h, old, error);
  }
  if (status == HF_OK) {
    status = tell_witness(h, n, error);
  }
  n->is_told = status == HF_OK;
  if (status != HF_OK) {
    name_remove(h, n);
  }
  return status;
}

/* In the order in which they were named: later ones may be queries over earlier ones. */
static hf_status tell_all(hf_harness *h, harness_name *n, hf_error *error) {
  if (n == NULL) {
    return HF_OK;
  }
  HF_TRY(tell_all(h, n->next, error));
  hold_drop(h, n);
  return tell_witness(h, n, error);
}

hf_status names_again(hf_harness *h, hf_error *error) {
  return tell_all(h, h->names, error);
}

void names_free(hf_harness *h) {
  for (harness_name *n = h->names, *next = NULL; n != NULL; n = next) {
    next = n->next;
    name_free(n);
  }
  h->names = NULL;
}

/* ---------------------------------------------------------------------- files */

static hf_status format_of(const char *format, const char *path, source_format *out, hf_error *error) {
  static const struct {
    const char *name;
    source_format format;
  } formats[] = {{"parquet", SOURCE_PARQUET}, {"csv", SOURCE_CSV}, {"json", SOURCE_JSON}};
  for (size_t i = 0; format != NULL && i < sizeof formats / sizeof formats[0]; i++) {
    if (strcasecmp(formats[i].name, format) == 0) {
      *out = formats[i].format;
      return HF_OK;
    }
  }
  if (format == NULL && source_format_of_path(path, out)) {
    return HF_OK;
  }
  error_set(error, HF_E_INVALID_ARGUMENT, "no reader has this format: %s", format == NULL ? path : format);
  error_hint(error, "use parquet, csv or json");
  return HF_E_INVALID_ARGUMENT;
}

static hf_status write_view(harness_name *n, const source_request *request, hf_error *error) {
  static const char *const readers[] = {"read_parquet", "read_csv", "read_json"};
  buf sql = {0};
  buf_printf(&sql, "SELECT * FROM %s(", readers[request->format]);
  for (size_t i = 0; i < request->n_paths; i++) {
    buf_text(&sql, i == 0 ? "[" : ", ");
    buf_sql_string(&sql, request->paths[i]);
  }
  buf_text(&sql, "])");
  n->body = sql.failed ? NULL : arena_strdup(n->memory, buf_cstr(&sql));
  buf_reset(&sql);
  return n->body == NULL ? harness_no_memory(error) : HF_OK;
}

static hf_status take_files(hf_harness *h, harness_name *n, const char *format, hf_list paths,
                            hf_error *error) {
  const char **absolute = arena_array(n->memory, paths.n, sizeof *absolute);
  source_request request = {.paths = absolute, .n_paths = paths.n, .written = paths.items};
  source *resolved = NULL;
  HF_TRY(format_of(format, paths.items[0], &request.format, error));
  for (size_t i = 0; absolute != NULL && i < paths.n; i++) {
    absolute[i] = source_path_absolute(paths.items[i], n->memory);
    absolute = absolute[i] == NULL ? NULL : absolute;
  }
  if (absolute == NULL) {
    return harness_no_memory(error);
  }
  HF_TRY(source_resolve(h->sources, &request, &resolved, error));
  source_release(resolved);
  HF_TRY(write_view(n, &request, error));
  return relation_from_read(&request, &n->plain, error);
}

hf_status hf_harness_files(hf_harness *h, const char *name, const char *format, hf_list paths,
                           hf_error *error) {
  harness_name *n = NULL;
  bool is_complete = h != NULL && paths.n > 0 && paths.items != NULL;
  for (size_t i = 0; is_complete && i < paths.n; i++) {
    is_complete = paths.items[i] != NULL && paths.items[i][0] != '\0' && utf8_is_right(paths.items[i]);
  }
  if (!is_complete) {
    return error_set(error, HF_E_INVALID_ARGUMENT,
                     "files need a harness, and paths that are neither empty nor other than UTF-8");
  }
  HF_TRY(name_new(name, &n, error));
  hf_status status = take_files(h, n, format, paths, error);
  if (status != HF_OK) {
    name_free(n);
    return status;
  }
  return name_add(h, n, error);
}

/* --------------------------------------------------------------------- streams */

/* Writes them as the attempt that the name has now. */
static hf_status write_rows(hf_harness *h, harness_name *n, struct ArrowArrayStream *rows,
                            uint64_t block_bytes, block_index *index, hf_error *error) {
  const char *dir = harness_dir(h, &n->local.refs[0], n->memory);
  const block_sink_options sink = {.dir = dir,
                                   .partitions = 1,
                                   .ordered = true,
                                   .budget_bytes = config_number(h->settings, CONFIG_SINK_BUDGET),
                                   .batch_bytes = block_bytes,
                                   .block_bytes = block_bytes};
  return dir == NULL ? harness_no_memory(error) : block_write_stream(rows, &sink, n->memory, index, error);
}

static void nothing(void *context) {
  (void)context;
}

/* Few blocks are few shares: rows of a small stream are written again, so that every task has some. */
static hf_status write_small(hf_harness *h, harness_name *n, block_index *index, hf_error *error) {
  const block_location whole = {.dir = harness_dir(h, &n->local.refs[0], n->memory)};
  struct ArrowArrayStream rows;
  if (whole.dir == NULL) {
    return harness_no_memory(error);
  }
  HF_TRY(block_stream_open(&whole, 1, nothing, NULL, &rows, error));
  n->local.refs[0].attempt.value++;
  HF_TRY(write_rows(h, n, &rows, index->bytes / STREAM_BLOCKS + 1, index, error));
  return file_remove_tree(whole.dir, error);
}

static hf_status take_stream(hf_harness *h, harness_name *n, struct ArrowArrayStream *rows, hf_error *error) {
  block_index index;
  n->local_id = uuid_new();
  n->local = (kept_rows){.n_refs = 1, .refs = arena_array(n->memory, 1, sizeof *n->local.refs)};
  if (n->local.refs == NULL) {
    return harness_no_memory(error);
  }
  n->local.refs[0] = (block_ref){.session = h->session,
                                 .job = {STREAM_JOBS + ++h->last_stream},
                                 .stage = {1},
                                 .task = {1},
                                 .attempt = {1}};
  HF_TRY(write_rows(h, n, rows, config_number(h->settings, CONFIG_SHUFFLE_BATCH_BYTES), &index, error));
  if (index.n_blocks < STREAM_BLOCKS && index.rows > 1) {
    HF_TRY(write_small(h, n, &index, error));
  }
  n->local.columns = index.columns;
  n->local.rows = index.rows;
  const char *dir = harness_dir(h, &n->local.refs[0], n->memory);
  return dir == NULL ? harness_no_memory(error)
                     : relation_from_local(&n->local_id, dir, &index.columns, index.rows, &n->plain, error);
}

hf_status hf_harness_stream(hf_harness *h, const char *name, struct ArrowArrayStream *rows, hf_error *error) {
  harness_name *n = NULL;
  hf_status status =
      h == NULL || rows == NULL || rows->release == NULL
          ? error_set(error, HF_E_INVALID_ARGUMENT, "a stream needs a harness, and must not be released")
          : name_new(name, &n, error);
  if (status == HF_OK) {
    status = take_stream(h, n, rows, error);
  }
  if (rows != NULL && rows->release != NULL) {
    rows->release(rows);
  }
  if (status != HF_OK) {
    if (n != NULL) {
      name_free(n);
    }
    return status;
  }
  return name_add(h, n, error);
}

/* ----------------------------------------------------------------------- views */

typedef struct view_call {
  hf_harness *h;
  harness_name *n;
  const char *query;
} view_call;

static hf_status bind_view(void *context, hf_error *error) {
  view_call *call = context;
  const hf_harness_config plain = {0};
  query_plan plan;
  HF_TRY(query_plan_begin(&plan, call->h, &plain, error));
  hf_status status = query_plan_bind(&plan, call->query, error);
  if (status == HF_OK) {
    call->n->plain = relation_retain(plan.relation);
  }
  query_plan_reset(&plan);
  return status;
}

hf_status hf_harness_view(hf_harness *h, const char *name, const char *query, hf_error *error) {
  view_call call = {.h = h, .query = query};
  if (h == NULL || query == NULL || !utf8_is_right(query)) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "a view needs a harness and a query in UTF-8");
  }
  HF_TRY(name_new(name, &call.n, error));
  hf_status status = planner_call(h, bind_view, &call, error);
  size_t length = strlen(query);
  while (length > 0 && strchr("; \t\r\n", query[length - 1]) != NULL) {
    length--;
  }
  call.n->body = arena_strndup(call.n->memory, query, length);
  call.n->is_query = true;
  if (status == HF_OK && call.n->body == NULL) {
    status = harness_no_memory(error);
  }
  if (status != HF_OK) {
    name_free(call.n);
    return status;
  }
  return name_add(h, call.n, error);
}

/* --------------------------------------------------------------- files of a query */

typedef struct known_source {
  const source_request *request;
  source *source;
} known_source;

source *names_source(void *context, const source_request *request) {
  const query_plan *p = context;
  for (size_t i = 0; i < p->n_known; i++) {
    if (p->known[i].request == request) {
      return p->known[i].source;
    }
  }
  return NULL;
}

hf_status names_resolve(query_plan *p, hf_error *error) {
  size_t n = p->query.n_needed_sources;
  known_source *known = arena_array(p->memory, p->n_known + n, sizeof *known);
  if (known == NULL) {
    return harness_no_memory(error);
  }
  if (p->n_known > 0) {
    memcpy(known, p->known, p->n_known * sizeof *known);
  }
  p->known = known;
  for (size_t i = 0; i < n; i++) {
    known[p->n_known].request = p->query.needed_sources[i];
    HF_TRY(source_resolve(p->h->sources, known[p->n_known].request, &known[p->n_known].source, error));
    p->n_known++;
  }
  return HF_OK;
}

void names_release(query_plan *p) {
  for (size_t i = 0; i < p->n_known; i++) {
    source_release(p->known[i].source);
  }
}
