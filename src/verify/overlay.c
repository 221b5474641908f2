/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The harness as a side of `holdfast verify`. Without it: overlay_none.c.
 * Thread: one at a time.
 */
#include "overlay.h"

#ifdef HOLDFAST_HARNESS
#include "base/mem.h"
#include "holdfast/harness.h"

#include <stdio.h>
#include <string.h>

typedef struct way {
  const char *name;
  hf_harness_config config;
} way;

struct overlays {
  arena *memory;
  hf_harness *harness;
  way *ways;
  size_t n, chosen;
  verify_side side;
};

bool overlays_are_built(void) {
  return true;
}

/* ------------------------------------------------------------------- names */

static hf_status name_query(void *context, const char *name, const char *query, hf_error *error) {
  overlays *o = context;
  return hf_harness_view(o->harness, name, query, error);
}

static hf_status name_rows(void *context, const char *name, struct ArrowArrayStream *rows, hf_error *error) {
  overlays *o = context;
  return hf_harness_stream(o->harness, name, rows, error);
}

static void drop_name(void *context, const char *name) {
  overlays *o = context;
  hf_harness_drop(o->harness, name, NULL);
}

/* -------------------------------------------------------------------- runs */

static bool is_refusal(hf_status status) {
  return status == HF_E_STATEMENT_REFUSED || status == HF_E_FUNCTION_REFUSED || status == HF_E_PATH_REFUSED;
}

static void note_spread(const hf_harness_report *r, hf_profile *out) {
  out->stages_run = r->n_stages;
  out->widest_tasks = 1;
  for (size_t i = 0; r->result == HF_HARNESS_DISTRIBUTED && i < r->n_stages; i++) {
    uint64_t with_rows = 0;
    for (uint32_t t = 0; t < r->stages[i].tasks; t++) {
      with_rows += r->stages[i].task_rows[t] > 0 ? 1 : 0;
    }
    out->widest_tasks = with_rows > out->widest_tasks ? with_rows : out->widest_tasks;
  }
  out->widest_tasks = r->result == HF_HARNESS_DISTRIBUTED && out->widest_tasks < 2 ? 2 : out->widest_tasks;
  if (r->result == HF_HARNESS_FELL_BACK) {
    snprintf(out->fallback, sizeof out->fallback, "%s", r->reason);
  }
}

/* The reader of Parquet has lost its place (witness/defects.c): an executor runs such a task again, the harness does not. */
static bool has_lost_its_place(const hf_harness_report *r) {
  return r->single_status == HF_OK && r->distributed_status == HF_E_FILE_FORMAT &&
         strcasestr(r->reason, "out of buffer") != NULL;
}

/* Of the answer of both sides, or of the errors. */
static void judge(const hf_harness_report *r, verify_outcome *out) {
  out->single_status = r->single_status;
  out->split_status = r->distributed_status;
  out->ran = r->distributed_status == HF_OK;
  out->rows = r->n_rows;
  out->single_us = r->single_us;
  out->session_us = r->run_us + r->planning_us;
  out->report.expected_rows = r->n_rows;
  out->report.verdict = r->differed ? COMPARE_OTHER_ROWS : COMPARE_SAME;
  out->report.reason = r->differed ? mem_strdup(r->reason) : NULL;
  note_spread(r, &out->profile);
  if (r->differed && (r->known_defect || r->indeterminate)) {
    out->result = VERIFY_SKIPPED;
    buf_printf(&out->reason, "%s: %s",
               r->known_defect ? "known defect of single-node DuckDB" : "not determinate", r->doubt);
  } else if (r->differed && has_lost_its_place(r)) {
    out->result = VERIFY_SKIPPED;
    buf_printf(&out->reason, "known defect of DuckDB, which the harness does not run again after: %s",
               r->reason);
  } else if (r->differed) {
    out->result = VERIFY_FAILED;
    buf_text(&out->reason, r->reason);
    out->report.differences = r->rows[0] == '\0' ? NULL : mem_strdup(r->rows);
  } else if (is_refusal(r->distributed_status)) {
    out->result = VERIFY_SKIPPED;
    buf_printf(&out->reason, "holdfast fails with %s: %s", hf_status_name(r->distributed_status), r->reason);
  } else if (!out->ran) {
    out->result = VERIFY_PASSED;
    buf_printf(&out->reason, "both fail with %s", hf_status_name(r->distributed_status));
  }
}

static void verify(void *context, const char *sql, verify_outcome *out) {
  overlays *o = context;
  hf_harness_report report;
  hf_error error = {0};
  memset(&report, 0, sizeof report);
  hf_status status = hf_assert_distributed_eq(o->harness, sql, &o->ways[o->chosen].config, &report, &error);
  if (status == HF_OK) {
    judge(&report, out);
  } else {
    out->result = VERIFY_FAILED;
    out->split_status = status;
    buf_printf(&out->reason, "the harness fails with %s: %s", hf_status_name(status),
               error.message == NULL ? "no details" : error.message);
  }
  hf_harness_report_reset(&report);
  hf_error_reset(&error);
}

/* ----------------------------------------------------------------- opening */

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for overlays");
}

static hf_status refuse_name(const char *name, hf_error *error) {
  size_t n = 0;
  const hf_harness_overlay *all = hf_harness_overlays(&n);
  buf hint = {0};
  for (size_t i = 0; i < n; i++) {
    buf_printf(&hint, "%s%s", i == 0 ? "" : ", ", all[i].name);
  }
  if (name[0] == '\0') {
    error_set(error, HF_E_SETTING_VALUE, "a name in the list of overlays is empty");
  } else if (hf_harness_overlay_named(name) != NULL) {
    error_set(error, HF_E_SETTING_VALUE, "an overlay is named twice: %s", name);
  } else if (strcmp(name, "all") == 0) {
    error_set(error, HF_E_SETTING_VALUE, "all overlays cannot be one of several: all");
  } else {
    error_set(error, HF_E_SETTING_VALUE, "there is no such overlay: %s", name);
  }
  error_hint(error, "overlays are %s, or all by itself", buf_cstr(&hint));
  buf_reset(&hint);
  return HF_E_SETTING_VALUE;
}

static hf_status add_way(overlays *o, const char *name, hf_error *error) {
  const hf_harness_overlay *found = hf_harness_overlay_named(name);
  for (size_t i = 0; found != NULL && i < o->n; i++) {
    found = strcmp(o->ways[i].name, name) == 0 ? NULL : found;
  }
  if (found == NULL) {
    return refuse_name(name, error);
  }
  o->ways[o->n++] = (way){found->name, found->config};
  return HF_OK;
}

static hf_status read_names(overlays *o, const overlays_options *options, hf_error *error) {
  size_t n = 0;
  const hf_harness_overlay *all = hf_harness_overlays(&n);
  const char *names = options->names;
  o->ways = arena_array(o->memory, n + (names == NULL ? 1 : strlen(names) + 1), sizeof *o->ways);
  if (o->ways == NULL) {
    return no_memory(error);
  }
  if (names == NULL) {
    o->ways[o->n++] = (way){options->exchange, {.tasks = options->tasks, .slots = options->tasks}};
    return HF_OK;
  }
  if (strcmp(names, "all") == 0) {
    for (size_t i = 0; i < n; i++) {
      HF_TRY(add_way(o, all[i].name, error));
    }
    return HF_OK;
  }
  for (const char *rest = names, *name = NULL; rest != NULL;) {
    size_t length = strcspn(rest, ",");
    name = arena_strndup(o->memory, rest, length);
    HF_TRY(name == NULL ? no_memory(error) : add_way(o, name, error));
    rest = rest[length] == '\0' ? NULL : rest + length + 1;
  }
  return HF_OK;
}

static hf_status set_exchange(overlays *o, const char *exchange, hf_error *error) {
  bool is_streaming = exchange != NULL && strcmp(exchange, "streaming") == 0;
  if (exchange == NULL) {
    return HF_OK;
  }
  if (!is_streaming && strcmp(exchange, "blocking") != 0) {
    error_set(error, HF_E_SETTING_VALUE, "there is no such exchange: %s", exchange);
    error_hint(error, "an exchange is blocking or streaming");
    return HF_E_SETTING_VALUE;
  }
  for (size_t i = 0; i < o->n; i++) {
    o->ways[i].config.exchange = is_streaming ? HF_HARNESS_STREAMING : HF_HARNESS_BLOCKING;
  }
  return HF_OK;
}

static hf_status open_harness(overlays *o, const overlays_options *options, hf_error *error) {
  hf_setting zone = {"sql.time_zone", options->time_zone};
  hf_harness_options harness = {
      .work_dir = options->work_dir, .allow_path = options->allow_path, .settings = &zone, .n_settings = 1};
  return hf_harness_open(&harness, &o->harness, error);
}

hf_status overlays_check(const char *names, hf_error *error) {
  overlays o = {.memory = arena_new()};
  hf_status status =
      o.memory == NULL ? no_memory(error) : read_names(&o, &(overlays_options){.names = names}, error);
  arena_free(o.memory);
  return status;
}

hf_status overlays_open(const overlays_options *options, overlays **out, hf_error *error) {
  arena *a = arena_new();
  overlays *o = a == NULL ? NULL : arena_alloc(a, sizeof *o);
  if (o == NULL) {
    arena_free(a);
    return no_memory(error);
  }
  o->memory = a;
  o->side = (verify_side){name_query, name_rows, drop_name, verify, o};
  hf_status status = read_names(o, options, error);
  if (status == HF_OK) {
    status = set_exchange(o, options->exchange, error);
  }
  if (status == HF_OK) {
    status = open_harness(o, options, error);
  }
  if (status != HF_OK) {
    overlays_close(o);
    return status;
  }
  *out = o;
  return HF_OK;
}

void overlays_close(overlays *o) {
  if (o != NULL) {
    hf_harness_close(o->harness);
    arena_free(o->memory);
  }
}

size_t overlays_count(const overlays *o) {
  return o->n;
}

unsigned overlays_tasks(const overlays *o, size_t number) {
  return o->ways[number].config.tasks;
}

const verify_side *overlays_side(overlays *o) {
  return &o->side;
}

const char *overlays_choose(overlays *o, size_t number) {
  o->chosen = number;
  return o->ways[number].name;
}
#endif
