/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describing and explaining: a relation is planned as far as its columns or its
 * text need, on a planning thread. Held results are looked at, never claimed,
 * waited for or computed: what is not there is planned as if it were.
 * Threads: door functions any; the rest a planning thread, but for look_handle (the scheduler's).
 */
#include "scheduler/scheduler_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
  DEEPEST_FILL = 20,      /* misses below misses whose plans are shown */
  ROWS_OF_A_MISS = 100000 /* what the planner is told of a result that is not there */
};

/* ----------------------------------------------------------------- looking */

typedef struct look_call {
  call base;
  planning *p;
  hf_status status;
  hf_error error;
} look_call;

static void look_handle(scheduler *s, message *m) {
  look_call *c = (look_call *)m;
  held_need *need = NULL;
  LL_FOREACH(c->p->needs, need) {
    if (c->status == HF_OK && need->state == NEED_NEW) {
      need->wants_check = c->p->settings->follows_sources;
      c->status = held_look(s, &c->p->session, need, c->p->lasting, &c->error);
      need->info.rows = need->is_miss ? ROWS_OF_A_MISS : need->info.rows;
      if (need->is_miss && relation_only_describes(c->p->relation)) {
        need->is_miss = false;
        need->info = (held_info){.answer = HELD_INLINE};
      }
    }
  }
  call_finish(&c->base);
}

static hf_status look(scheduler *s, planning *p, hf_error *error) {
  look_call c = {.p = p};
  call_init(&c.base, look_handle);
  if (!call_run(s, &s->events, &c.base)) {
    c.status = error_set(&c.error, HF_E_SESSION_CLOSED, "the engine is closed");
  }
  call_reset(&c.base);
  if (c.status != HF_OK) {
    error_move(error, &c.error);
  }
  return c.status;
}

/* What its session would compute anew, because its sources have changed, is as good as not there. */
static void look_at_sources(planning *p) {
  freshness_check(p);
  held_need *need = NULL;
  LL_FOREACH(p->needs, need) {
    need->is_changed = need->is_changed || need->is_stale;
    need->is_miss = need->is_miss || need->is_stale;
    need->is_stale = false;
  }
}

/* Lowers with the answers of looks. `p` is zeroed; the caller resets it in any case. */
static hf_status lower_by_looks(scheduler *s, planning *p, const job_request *request, hf_error *error) {
  p->session = request->session;
  p->relation = request->relation;
  p->settings = &request->settings;
  HF_TRY(planning_begin(p, error));
  do {
    HF_TRY(planning_lower(s, p, error));
    if (p->needs_held) {
      HF_TRY(look(s, p, error));
      look_at_sources(p);
    }
  } while (p->needs_held);
  p->ordered = p->query.ordered || planning_input_bytes(p) < p->settings->ordered_below_bytes;
  return HF_OK;
}

/* -------------------------------------------------------------------- text */

static void put_count(buf *out, uint64_t count) {
  if (count >= 1000) {
    put_count(out, count / 1000);
    buf_printf(out, ",%03u", (unsigned)(count % 1000));
  } else {
    buf_printf(out, "%u", (unsigned)count);
  }
}

static void put_bytes(buf *out, uint64_t bytes) {
  static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = (double)bytes;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
    value /= 1000;
    unit++;
  }
  buf_printf(out, unit > 0 && value < 9.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void put_indent(buf *out, unsigned depth) {
  for (unsigned i = 0; i < depth; i++) {
    buf_text(out, "  ");
  }
}

static void put_text_indented(buf *out, const char *text, unsigned depth) {
  for (; *text != '\0'; text++) {
    buf_char(out, *text);
    if (*text == '\n') {
      put_indent(out, depth);
    }
  }
}

static void put_sql(buf *out, const lowered *query, unsigned depth) {
  put_indent(out, depth);
  buf_text(out, "SQL: ");
  for (size_t i = 0; i < query->n_pieces; i++) {
    if (query->pieces[i].text == NULL) {
      buf_printf(out, "[input %u]", query->pieces[i].input);
    } else {
      put_text_indented(out, query->pieces[i].text, depth + 1);
    }
  }
  buf_char(out, '\n');
}

static const char *name_of(const held_need *need) {
  return need->name != NULL ? need->name : need->key.text;
}

/* read_parquet 3 files, 3,000,000 rows (exact), 64 MB */
static void put_source(buf *out, const lower_input *input) {
  const char *reader = strstr(source_reader_text(input->source), "read_");
  size_t n_files = source_n_files(input->source);
  buf_append(out, reader == NULL ? "files" : reader, reader == NULL ? 5 : strcspn(reader, "("));
  buf_char(out, ' ');
  put_count(out, n_files);
  buf_text(out, n_files == 1 ? " file, " : " files, ");
  put_count(out, input->rows);
  buf_text(out, input->rows_exact ? " rows (exact), " : " rows (estimated), ");
  put_bytes(out, source_bytes(input->source));
}

/* partitioned by k, 8 */
static void put_partitioning(buf *out, const held_need *need) {
  const entry_partitioning *by = &need->partitioning;
  for (size_t i = 0; i < by->n_columns; i++) {
    buf_printf(out, "%s%s", i == 0 ? ", partitioned by " : ", ",
               need->info.columns.columns[by->columns[i]].name);
  }
  if (by->n_columns > 0) {
    buf_printf(out, ", %u", by->n);
  }
}

static void put_held(buf *out, const held_need *need) {
  if (need->is_miss) {
    buf_printf(out, "CachedRead [%s → materialise] %s", need->is_changed ? "source changed" : "miss",
               name_of(need));
    put_partitioning(out, need);
    return;
  }
  buf_printf(out, "CachedRead [hit, generation %llu] %s ", (unsigned long long)need->info.generation,
             name_of(need));
  put_count(out, need->info.rows);
  buf_text(out, " rows, ");
  put_bytes(out, need->bytes);
  buf_text(out, need->info.ordered ? ", ordered" : "");
  put_partitioning(out, need);
}

static hf_status put_query(scheduler *s, const planning *p, unsigned depth, buf *out, hf_error *error);

/* What the fill of a miss would run. */
static hf_status put_fill(scheduler *s, const planning *p, const held_need *need, unsigned depth, buf *out,
                          hf_error *error) {
  if (depth >= DEEPEST_FILL) {
    put_indent(out, depth);
    buf_text(out, "…\n");
    return HF_OK;
  }
  job_request request = {
      .session = p->session, .relation = relation_look(need->node).input, .settings = *p->settings};
  planning fill = {.shows_fill = true};
  hf_status status = lower_by_looks(s, &fill, &request, error);
  if (status == HF_OK) {
    status = planning_bind(s, &fill, error);
  }
  if (status == HF_OK) {
    status = put_query(s, &fill, depth, out, error);
  }
  planning_reset(&fill);
  return status;
}

typedef struct shown_input {
  const lower_input *input;
  const char *how; /* it is shared */
} shown_input;

static hf_status put_input(scheduler *s, const planning *p, shown_input shown, unsigned depth, buf *out,
                           hf_error *error) {
  const lower_input *input = shown.input;
  if (input->kind == LOWER_INPUT_SOURCE) {
    put_source(out, input);
  } else if (input->kind == LOWER_INPUT_LOCAL) {
    buf_text(out, "client data, ");
    put_count(out, input->rows);
    buf_text(out, " rows");
  } else {
    uuid key = relation_look(input->cache_node).cache_id;
    const held_need *need = planning_need(p, &key);
    put_held(out, need);
    buf_printf(out, "%s\n", shown.how);
    return need->is_miss ? put_fill(s, p, need, depth + 1, out, error) : HF_OK;
  }
  buf_printf(out, "%s\n", shown.how);
  return HF_OK;
}

/* ------------------------------------------------------------------- stages */

static const char *share_text(const cut_input *input, bool one_task) {
  if (one_task) {
    return ", all of it";
  }
  switch (input->share) {
    case CUT_SPLIT:
      return ", split among the tasks";
    case CUT_PARTITION:
      return input->is_stage ? ", a partition each" : ", each task its partitions: no exchange";
    default:
      return ", all of it by each task";
  }
}

/* stage 1: scan, partial aggregate: 3 tasks, 3 partitions, ordered */
static void put_stage_head(const planning *p, size_t number, unsigned depth, buf *out) {
  const cut_stage *stage = &p->graph.stages[number];
  bool is_last = number + 1 == p->graph.n_stages;
  put_indent(out, depth);
  buf_printf(out, "stage %zu: %s: ", number + 1, stage->what == NULL ? "" : stage->what);
  if (!stage->one_task) {
    buf_printf(out, "%u tasks", p->n_tasks);
  } else if (stage->why_one != NULL && stage->why_one[0] != '\0') {
    buf_printf(out, "one task (%s)", stage->why_one);
  } else {
    buf_text(out, "one task");
  }
  if (stage->partitions > 1) {
    buf_printf(out, ", %u partitions", stage->partitions);
  }
  buf_text(out, stage->ordered || (is_last && p->ordered) ? ", ordered\n" : ", not ordered\n");
}

static void put_stage_sql(const cut_stage *stage, unsigned depth, buf *out) {
  put_indent(out, depth);
  buf_text(out, "SQL: ");
  for (size_t i = 0; i < stage->n_pieces; i++) {
    if (stage->pieces[i].text == NULL) {
      buf_printf(out, "[input %u]", stage->pieces[i].input);
    } else {
      put_text_indented(out, stage->pieces[i].text, depth + 1);
    }
  }
  buf_char(out, '\n');
}

static hf_status put_stage(scheduler *s, const planning *p, size_t number, unsigned depth, buf *out,
                           hf_error *error) {
  const cut_stage *stage = &p->graph.stages[number];
  put_stage_head(p, number, depth, out);
  put_stage_sql(stage, depth + 1, out);
  for (size_t i = 0; i < stage->n_inputs; i++) {
    const cut_input *input = &stage->inputs[i];
    const char *how = share_text(input, stage->one_task);
    put_indent(out, depth + 1);
    buf_printf(out, "input %zu: ", i);
    if (input->is_stage) {
      buf_printf(out, "stage %u%s\n", input->stage + 1, how);
    } else {
      shown_input shown = {&p->query.inputs[strtoul(input->source_id, NULL, 10)], how};
      HF_TRY(put_input(s, p, shown, depth + 1, out, error));
    }
  }
  return HF_OK;
}

/* The lowered query as one stage. */
static hf_status put_only_stage(scheduler *s, const planning *p, unsigned depth, buf *out, hf_error *error) {
  put_indent(out, depth);
  buf_text(out, "stage 1: one task (");
  buf_text(out, p->fallback == NULL ? "fits one slot" : p->fallback);
  buf_printf(out, "), %s\n", p->ordered ? "ordered" : "not ordered");
  put_sql(out, &p->query, depth + 1);
  for (size_t i = 0; i < p->query.n_inputs; i++) {
    put_indent(out, depth + 1);
    buf_printf(out, "input %zu: ", i);
    HF_TRY(put_input(s, p, (shown_input){&p->query.inputs[i], ""}, depth + 1, out, error));
  }
  return HF_OK;
}

/* The stages with their SQL and inputs, and what is computed inline. */
static hf_status put_query(scheduler *s, const planning *p, unsigned depth, buf *out, hf_error *error) {
  if (p->graph.n_stages == 0) {
    HF_TRY(put_only_stage(s, p, depth, out, error));
  }
  for (size_t i = 0; i < p->graph.n_stages; i++) {
    HF_TRY(put_stage(s, p, i, depth, out, error));
  }
  const held_need *need = NULL;
  LL_FOREACH(p->needs, need) {
    if (need->is_released) {
      put_indent(out, depth + 1);
      buf_printf(out, "Inline [released] %s\n", name_of(need));
    }
  }
  return HF_OK;
}

typedef struct engine_text {
  planning *p;
  const char *sql, *text;
  engine_scan *scans;
} engine_text;

static hf_status explain_on(void *context, engine *planner_engine, hf_error *error) {
  engine_text *e = context;
  engine_set_scans(planner_engine, e->scans, e->p->query.n_inputs);
  return engine_explain(planner_engine, e->sql, e->p->memory, &e->text, error);
}

static hf_status put_engine_plan(scheduler *s, planning *p, buf *out, hf_error *error) {
  engine_text e = {.p = p};
  HF_TRY(plan_text_for_planner(&p->query, p->memory, &e.sql, &e.scans, error));
  planner_user user = {.who = p, .use = explain_on, .context = &e};
  HF_TRY(planner_use(s, p->settings, &user, error));
  buf_text(out, e.text);
  return HF_OK;
}

/* ------------------------------------------------------------------- calls */

typedef struct look_at_call {
  call base;
  const job_request *request;
  arena *a;    /* describe: of the columns */
  schema *out; /* describe */
  char **text; /* explain */
  hf_status status;
  hf_error error;
} look_at_call;

static hf_status describe(scheduler *s, const look_at_call *c, planning *p, hf_error *error) {
  p->is_describing = true;
  HF_TRY(lower_by_looks(s, p, c->request, error));
  HF_TRY(planning_bind(s, p, error));
  return schema_copy(&p->columns, c->a, c->out, error);
}

static void describe_handle(scheduler *s, message *m) {
  look_at_call *c = (look_at_call *)m;
  planning p = {0};
  c->status = describe(s, c, &p, &c->error);
  planning_reset(&p);
  call_finish(&c->base);
}

static hf_status explain(scheduler *s, const look_at_call *c, planning *p, buf *out, hf_error *error) {
  HF_TRY(lower_by_looks(s, p, c->request, error));
  HF_TRY(planning_bind(s, p, error));
  buf_text(out, "== Holdfast plan ==\n");
  HF_TRY(put_query(s, p, 0, out, error));
  buf_text(out, "\n== DuckDB plan ==\n");
  HF_TRY(put_engine_plan(s, p, out, error));
  *c->text = buf_take(out);
  return *c->text != NULL ? HF_OK : error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an explanation");
}

static void explain_handle(scheduler *s, message *m) {
  look_at_call *c = (look_at_call *)m;
  planning p = {0};
  buf out = {0};
  c->status = explain(s, c, &p, &out, &c->error);
  buf_reset(&out);
  planning_reset(&p);
  call_finish(&c->base);
}

static hf_status run_on_planner(scheduler *s, look_at_call *c, hf_error *error) {
  if (!call_run(s, &s->plans, &c->base)) {
    c->status = error_set(&c->error, HF_E_SESSION_CLOSED, "the engine is closed");
  }
  call_reset(&c->base);
  if (c->status != HF_OK) {
    error_move(error, &c->error);
  }
  return c->status;
}

hf_status scheduler_describe(scheduler *s, const job_request *request, arena *a, schema *out,
                             hf_error *error) {
  look_at_call c = {.request = request, .a = a, .out = out};
  call_init(&c.base, describe_handle);
  return run_on_planner(s, &c, error);
}

hf_status scheduler_explain(scheduler *s, const job_request *request, char **out, hf_error *error) {
  look_at_call c = {.request = request, .text = out};
  call_init(&c.base, explain_handle);
  return run_on_planner(s, &c, error);
}
