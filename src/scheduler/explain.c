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

/* ------------------------------------------------------------------- fills */

/* How deep it is in fills below fills; their plans are those of misses. */
typedef struct explaining {
  scheduler *s;
  const planning *p;
  unsigned depth;
  hf_status status; /* the first failure */
  hf_error *error;
} explaining;

static hf_status note_plan(explaining *e, job_profile *out);

/* What the fill of a miss would run. */
static hf_status plan_fill(const explaining *above, const held_need *need, job_profile *out) {
  const planning *p = above->p;
  if (above->depth >= DEEPEST_FILL) {
    profile_add_note(out, 0, "…");
    return HF_OK;
  }
  job_request request = {
      .session = p->session, .relation = relation_look(need->node).input, .settings = *p->settings};
  planning fill = {.shows_fill = true};
  explaining below = {.s = above->s, .p = &fill, .depth = above->depth + 1, .error = above->error};
  hf_status status = lower_by_looks(above->s, &fill, &request, above->error);
  if (status == HF_OK) {
    status = planning_bind(above->s, &fill, above->error);
  }
  if (status == HF_OK) {
    status = note_plan(&below, out);
  }
  planning_reset(&fill);
  return status;
}

static job_profile *fill_of(void *context, const held_need *need) {
  explaining *e = context;
  if (!need->is_miss || e->status != HF_OK) {
    return NULL;
  }
  job_profile *fill = profile_new(0);
  e->status = fill == NULL ? error_set(e->error, HF_E_OUT_OF_MEMORY, "no memory for an explanation")
                           : plan_fill(e, need, fill);
  return fill;
}

/* The stages with their SQL and inputs, and what is computed inline. */
static hf_status note_plan(explaining *e, job_profile *out) {
  observe_plan(e->p, &(observe_fills){fill_of, e}, out);
  const held_need *need = NULL;
  LL_FOREACH(e->p->needs, need) {
    if (need->is_released) {
      const char *name = need->name != NULL ? need->name : need->key.text;
      profile_add_inlined(out, profile_say(out, "[released] %s", name));
    }
  }
  return e->status;
}

static hf_status put_plan(scheduler *s, const planning *p, buf *out, hf_error *error) {
  job_profile *shown = profile_new(0);
  if (shown == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for an explanation");
  }
  explaining e = {.s = s, .p = p, .error = error};
  hf_status status = note_plan(&e, shown);
  if (status == HF_OK) {
    profile_put_stages(shown, out);
  }
  profile_release(shown);
  return status;
}

/* ------------------------------------------------------------ DuckDB's plan */

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
  HF_TRY(put_plan(s, p, out, error));
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
