/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Actions: run a relation and hand its committed result out, as a stream, as a
 * count, as text; and what is told of a relation without running it.
 * Thread: any. A stream may outlive its session and its engine: its blocks are
 * mapped when it is opened.
 */
#include "session/session_internal.h"

#include "base/mem.h"

#include <string.h>

/* --------------------------------------------------------------------- jobs */

static hf_status request_of(session *s, const relation *r, arena *a, job_request *out, hf_error *error) {
  *out = (job_request){.session = s->id, .relation = r};
  return settings_for_job(s, a, &out->settings, error);
}

/* What fails while the session closes fails for that reason: its jobs are cancelled, its holds and files are gone. */
static hf_status say_closed(session *s, hf_status status, hf_error *error) {
  if (status == HF_OK || status == HF_E_SESSION_CLOSED || !session_is_closed(s)) {
    return status;
  }
  hf_error why = {0};
  error_move(&why, error);
  error_set(error, HF_E_SESSION_CLOSED, "the session was closed while the query ran");
  if (error != NULL) {
    error_cause(error, why.message);
  }
  hf_error_reset(&why);
  return HF_E_SESSION_CLOSED;
}

hf_status result_run(session *s, const relation *r, const job_watch *watch, hf_profile *profile,
                     job_result *out, hf_error *error) {
  arena *a = arena_new();
  if (a == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to run a query");
  }
  static const job_watch nobody = {0};
  hf_profile ignored;
  hf_profile *filled = profile == NULL ? &ignored : profile;
  memset(filled, 0, sizeof *filled);
  job_request request;
  hf_status status = request_of(s, r, a, &request, error);
  if (status == HF_OK) {
    status = scheduler_run(runtime_scheduler(s->runtime), &request, watch == NULL ? &nobody : watch, out,
                           filled, error);
  }
  arena_free(a);
  return say_closed(s, status, error);
}

/* ------------------------------------------------------------------ streams */

/* What a client's stream refers to. */
typedef struct open_result {
  runtime *runtime;
  job_id job;
} open_result;

static void let_go(void *context) {
  open_result *result = context;
  runtime_release_result(result->runtime, result->job);
  mem_free(result);
}

/* Opens a stream over the result, whose memory it frees; on failure the result is let go. */
static hf_status open_stream(session *s, job_result *result, struct ArrowArrayStream *out, hf_error *error) {
  open_result *context = mem_zalloc(1, sizeof *context);
  hf_status status = HF_E_OUT_OF_MEMORY;
  if (context == NULL) {
    error_set(error, status, "no memory for a result");
    scheduler_release_result(runtime_scheduler(s->runtime), result->job);
  } else {
    *context = (open_result){runtime_retain(s->runtime), result->job};
    status = block_stream_open(result->locations, result->n_locations, let_go, context, out, error);
    if (status != HF_OK) {
      let_go(context);
    }
  }
  arena_free(result->memory);
  return status;
}

static hf_status collect_entered(session *s, const relation *r, const job_watch *watch, hf_profile *profile,
                                 struct ArrowArrayStream *out, hf_error *error) {
  job_result result;
  HF_TRY(result_run(s, r, watch, profile, &result, error));
  return open_stream(s, &result, out, error);
}

hf_status session_collect(session *s, const relation *r, const job_watch *watch, hf_profile *profile,
                          struct ArrowArrayStream *out, hf_error *error) {
  HF_TRY(session_enter(s, error));
  return session_leave(s, collect_entered(s, r, watch, profile, out, error));
}

/* -------------------------------------------------------------------- count */

/* Reads the one BIGINT of a stream, and releases it. */
static hf_status read_count(struct ArrowArrayStream *stream, uint64_t *out, hf_error *error) {
  struct ArrowArray rows = {0};
  hf_status status = HF_OK;
  if (stream->get_next(stream, &rows) != 0) {
    const char *why = stream->get_last_error(stream);
    status = error_set(error, HF_E_IO, "the result cannot be read back: %s", why == NULL ? "" : why);
  } else if (rows.release == NULL || rows.length != 1 || rows.n_children != 1) {
    status = error_set(error, HF_E_INTERNAL, "a count has no single value");
  } else {
    const struct ArrowArray *number = rows.children[0];
    int64_t value;
    memcpy(&value, (const int64_t *)number->buffers[1] + number->offset, sizeof value);
    *out = (uint64_t)value;
  }
  if (rows.release != NULL) {
    rows.release(&rows);
  }
  stream->release(stream);
  return status;
}

static hf_status count_entered(session *s, const relation *r, const job_watch *watch, hf_profile *profile,
                               uint64_t *out, hf_error *error) {
  relation *counting = NULL;
  HF_TRY(query_over(s, "SELECT count(*) AS n FROM q", r, &counting, error));
  struct ArrowArrayStream stream;
  hf_status status = collect_entered(s, counting, watch, profile, &stream, error);
  relation_release(counting);
  HF_TRY(status);
  return read_count(&stream, out, error);
}

hf_status session_count(session *s, const relation *r, const job_watch *watch, hf_profile *profile,
                        uint64_t *out, hf_error *error) {
  HF_TRY(session_enter(s, error));
  return session_leave(s, count_entered(s, r, watch, profile, out, error));
}

/* --------------------------------------------------------------------- show */

/* SELECT of every column from hf_blocks('r'), an ENUM as an ENUM again: nested, it is spelled otherwise than text. */
static void show_text(const schema *columns, buf *sql) {
  buf_text(sql, "SELECT ");
  for (size_t i = 0; i < columns->n_columns; i++) {
    const data_type *type = columns->columns[i].type;
    buf_text(sql, i == 0 ? "" : ", ");
    if (!data_type_contains(type, TYPE_ENUM)) {
      buf_printf(sql, "c%zu", i);
      continue;
    }
    buf_printf(sql, "CAST(c%zu AS ", i);
    data_type_to_sql(type, sql);
    buf_char(sql, ')');
  }
  buf_text(sql, " FROM hf_blocks('r')");
}

typedef struct show_call {
  const job_result *result;
  const text_sink *sink;
} show_call;

static hf_status show(void *context, engine *planner, hf_error *error) {
  const show_call *call = context;
  block_input_options options = {.locations = call->result->locations,
                                 .n_locations = call->result->n_locations,
                                 .ordered = true,
                                 .threads = 1};
  block_input *blocks = NULL;
  HF_TRY(block_input_new(&options, &blocks, error));
  buf sql = {0};
  show_text(&call->result->columns, &sql);
  engine_input input = {.id = "r",
                        .ops = block_input_ops(),
                        .source = blocks,
                        .columns = block_input_columns(blocks),
                        .block_schema = block_input_arrow_schema(blocks),
                        .rows = block_input_rows(blocks)};
  engine_shown shown = {.sql = buf_cstr(&sql), .inputs = &input, .n_inputs = 1};
  hf_status status = sql.failed
                         ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to show a result")
                         : engine_render(planner, &shown, call->sink->rows, call->sink->context, error);
  buf_reset(&sql);
  block_input_free(blocks);
  return status;
}

static hf_status show_entered(session *s, const relation *r, const job_watch *watch, hf_profile *profile,
                              const text_sink *sink, hf_error *error) {
  job_result result;
  HF_TRY(result_run(s, r, watch, profile, &result, error));
  hf_status status = HF_OK;
  if (sink->head(sink->context, &result.columns)) {
    show_call call = {.result = &result, .sink = sink};
    status = session_with_planner(s, show, &call, error);
  }
  scheduler_release_result(runtime_scheduler(s->runtime), result.job);
  arena_free(result.memory);
  return status;
}

hf_status session_show(session *s, const relation *r, const job_watch *watch, hf_profile *profile,
                       const text_sink *sink, hf_error *error) {
  HF_TRY(session_enter(s, error));
  return session_leave(s, show_entered(s, r, watch, profile, sink, error));
}

/* --------------------------------------------------------- without running it */

/* A query of no rows whose columns have these names and types. */
static void empty_text(const schema *columns, buf *sql) {
  buf_text(sql, "SELECT ");
  for (size_t i = 0; i < columns->n_columns; i++) {
    buf_text(sql, i == 0 ? "CAST(NULL AS " : ", CAST(NULL AS ");
    data_type_to_sql(columns->columns[i].type, sql);
    buf_text(sql, ") AS ");
    buf_sql_name(sql, columns->columns[i].name);
  }
  buf_text(sql, " LIMIT 0");
}

/* The Arrow schema that results of these columns have: that of an empty one, so that the two cannot differ. */
static hf_status arrow_schema(session *s, const schema *columns, struct ArrowSchema *out, hf_error *error) {
  buf sql = {0};
  empty_text(columns, &sql);
  relation *empty = NULL;
  hf_status status = sql.failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a schema")
                                : query_over(s, buf_cstr(&sql), NULL, &empty, error);
  buf_reset(&sql);
  HF_TRY(status);
  struct ArrowArrayStream stream;
  status = collect_entered(s, empty, NULL, NULL, &stream, error);
  relation_release(empty);
  HF_TRY(status);
  if (stream.get_schema(&stream, out) != 0) {
    const char *why = stream.get_last_error(&stream);
    status = error_set(error, HF_E_IO, "the schema cannot be read back: %s", why == NULL ? "" : why);
  }
  stream.release(&stream);
  return status;
}

static hf_status schema_entered(session *s, const relation *r, arena *a, struct ArrowSchema *out,
                                hf_error *error) {
  job_request request;
  schema columns;
  HF_TRY(request_of(s, r, a, &request, error));
  HF_TRY(
      say_closed(s, scheduler_describe(runtime_scheduler(s->runtime), &request, a, &columns, error), error));
  return arrow_schema(s, &columns, out, error);
}

hf_status session_schema(session *s, const relation *r, struct ArrowSchema *out, hf_error *error) {
  HF_TRY(session_enter(s, error));
  arena *a = arena_new();
  hf_status status = a == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a schema")
                               : schema_entered(s, r, a, out, error);
  arena_free(a);
  return session_leave(s, status);
}

static hf_status explain_entered(session *s, const relation *r, arena *a, char **out, hf_error *error) {
  job_request request;
  HF_TRY(request_of(s, r, a, &request, error));
  return say_closed(s, scheduler_explain(runtime_scheduler(s->runtime), &request, out, error), error);
}

hf_status session_explain(session *s, const relation *r, char **out, hf_error *error) {
  HF_TRY(session_enter(s, error));
  arena *a = arena_new();
  hf_status status = a == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to explain a query")
                               : explain_entered(s, r, a, out, error);
  arena_free(a);
  return session_leave(s, status);
}

static hf_status analyze_entered(session *s, const relation *r, const job_watch *watch, hf_profile *profile,
                                 char **out, hf_error *error) {
  job_profile *own = NULL;
  job_watch noting = watch == NULL ? (job_watch){0} : *watch;
  noting.profile = noting.profile == NULL ? &own : noting.profile;
  job_result result;
  hf_status status = result_run(s, r, &noting, profile, &result, error);
  if (status == HF_OK) {
    scheduler_release_result(runtime_scheduler(s->runtime), result.job);
    arena_free(result.memory);
    buf text = {0};
    profile_put_text(*noting.profile, &text);
    *out = buf_take(&text);
    status = *out != NULL ? HF_OK : error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an explanation");
  }
  profile_release(own);
  return status;
}

hf_status session_explain_analyze(session *s, const relation *r, const job_watch *watch, hf_profile *profile,
                                  char **out, hf_error *error) {
  HF_TRY(session_enter(s, error));
  return session_leave(s, analyze_entered(s, r, watch, profile, out, error));
}
