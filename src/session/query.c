/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From SQL text of a query to a relation with its names bound. The values that a
 * PIVOT does not list are looked up first.
 * Thread: any; parsing runs on a planning thread with a planner's engine while the caller waits.
 */
#include "session/session_internal.h"

#include "sql/pivot.h"

#include <string.h>
#include <strings.h>

/* PIVOTs of a text, one in the other; and values of one, which DuckDB bounds so, too (pivot_limit). */
enum { MOST_PIVOTS = 16, MOST_VALUES = 100000 };

hf_status session_with_planner(session *s, hf_status (*use)(void *context, engine *planner, hf_error *error),
                               void *context, hf_error *error) {
  arena *a = arena_new();
  if (a == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for settings");
  }
  job_settings settings;
  hf_status status = settings_for_job(s, a, &settings, error);
  if (status == HF_OK) {
    status = scheduler_with_planner(runtime_scheduler(s->runtime), &settings, use, context, error);
  }
  arena_free(a);
  return status;
}

/* ------------------------------------------------------------------ parsing */

typedef struct parse_call {
  const char *sql;
  relation_names names;
  relation *parsed;
} parse_call;

static hf_status parse(void *context, engine *planner, hf_error *error) {
  parse_call *call = context;
  return relation_from_sql(planner, call->sql, &call->names, &call->parsed, error);
}

static hf_status relation_of(session *s, const char *sql, bool is_rewritten, relation **out,
                             hf_error *error) {
  name_list *list = names_snapshot(&s->names);
  parse_call call = {.sql = sql, .names = name_list_for_sql(list)};
  call.names.is_rewritten = is_rewritten;
  hf_status status = session_with_planner(s, parse, &call, error);
  name_list_release(list);
  if (status == HF_OK) {
    *out = call.parsed;
  }
  return status;
}

hf_status query_relation(session *s, const char *sql, relation **out, hf_error *error) {
  return relation_of(s, sql, false, out, error);
}

/* -------------------------------------------------------------------- PIVOT */

/* The list of values, as it grows. */
typedef struct value_list {
  buf text;
  size_t n;
  bool is_odd; /* not one column, or a NULL, or a text with NUL */
} value_list;

static bool values_begin(void *context, const schema *columns) {
  value_list *list = context;
  list->is_odd = columns->n_columns != 1;
  return !list->is_odd;
}

static bool values_add(void *context, const char *const *const *cells, const uint32_t *const *lengths,
                       size_t n_rows) {
  value_list *list = context;
  for (size_t i = 0; !list->is_odd && list->n <= MOST_VALUES && i < n_rows; i++) {
    const char *cell = cells[0][i];
    list->is_odd = cell == NULL || strlen(cell) != lengths[0][i];
    if (!list->is_odd) {
      buf_text(&list->text, list->n++ == 0 ? " IN (" : ", ");
      buf_sql_string(&list->text, cell);
    }
  }
  return !list->is_odd && list->n <= MOST_VALUES;
}

/* A text that is being filled. */
typedef struct filling {
  session *session;
  const job_watch *watch;
  buf text;
} filling;

/* Appends IN ('a', 'b'). */
static hf_status put_values(filling *f, const pivot_gap *gap, hf_error *error) {
  value_list list = {0};
  text_sink sink = {values_begin, values_add, &list};
  relation *query = NULL;
  hf_status status = query_relation(f->session, gap->values_sql, &query, error);
  if (status == HF_OK) {
    job_watch own = f->watch == NULL ? (job_watch){0} : *f->watch;
    own.profile = NULL; /* that of the query itself */
    status = session_show(f->session, query, &own, NULL, &sink, error);
    relation_release(query);
  }
  if (status == HF_OK && list.n > MOST_VALUES) {
    status = error_set(error, HF_E_LIMIT, "a PIVOT has more values than may be: %d", MOST_VALUES);
  } else if (status == HF_OK && (list.is_odd || list.n == 0)) {
    status = error_set(error, HF_E_UNSUPPORTED, "a PIVOT finds %s", list.is_odd ? "odd values" : "no values");
    error_hint(error, "list the values: PIVOT … ON x IN (…)");
  } else if (error != NULL) {
    error->position = -1; /* it would be one of our text */
  }
  buf_append(&f->text, list.text.data, list.text.length);
  buf_char(&f->text, ')');
  f->text.failed = f->text.failed || list.text.failed;
  buf_reset(&list.text);
  return status;
}

static hf_status fill_gaps(filling *f, const char *sql, const pivot_gap *gaps, size_t n, hf_error *error) {
  size_t at = 0;
  for (size_t i = 0; i < n; i++) {
    buf_append(&f->text, sql + at, gaps[i].begin - at);
    HF_TRY(put_values(f, &gaps[i], error));
    at = gaps[i].end;
  }
  buf_text(&f->text, sql + at);
  return HF_OK;
}

/* The text with the values of its innermost PIVOT that lacks them; NULL: none does. */
static hf_status with_values(session *s, const char *sql, const job_watch *watch, arena *a, const char **out,
                             hf_error *error) {
  const pivot_gap *gaps = NULL;
  size_t n = 0;
  filling f = {.session = s, .watch = watch};
  *out = NULL;
  HF_TRY(pivot_find_gaps(sql, a, &gaps, &n, error));
  if (n == 0) {
    return HF_OK;
  }
  hf_status status = fill_gaps(&f, sql, gaps, n, error);
  if (status == HF_OK) {
    *out = f.text.failed ? NULL : arena_strdup(a, buf_cstr(&f.text));
    status =
        *out == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the values of a PIVOT") : HF_OK;
  }
  buf_reset(&f.text);
  return status;
}

hf_status query_relation_now(session *s, const char *sql, const job_watch *watch, relation **out,
                             hf_error *error) {
  hf_error found = {0};
  hf_status status = query_relation(s, sql, out, &found);
  arena *a = status == HF_E_UNSUPPORTED ? arena_new() : NULL;
  for (int i = 0; a != NULL && status == HF_E_UNSUPPORTED && i < MOST_PIVOTS; i++) {
    hf_error failed = {0};
    const char *text = NULL;
    hf_status filled = with_values(s, sql, watch, a, &text, &failed);
    if (filled == HF_OK && text == NULL) {
      break; /* something else is not there */
    }
    hf_error_reset(&found);
    error_move(&found, &failed);
    sql = text;
    status = filled == HF_OK ? relation_of(s, text, true, out, &found) : filled;
    found.position = -1;
    i = filled == HF_OK ? i : MOST_PIVOTS;
  }
  arena_free(a);
  if (status != HF_OK && error != NULL) {
    error_move(error, &found);
  }
  hf_error_reset(&found);
  return status;
}

static const relation *input_lookup(void *context, const char *name) {
  return strcasecmp(name, "q") == 0 ? *(const relation **)context : NULL;
}

static const char *input_name_at(void *context, size_t i) {
  (void)context;
  return i == 0 ? "q" : NULL;
}

hf_status query_over(session *s, const char *sql, const relation *input, relation **out, hf_error *error) {
  parse_call call = {.sql = sql,
                     .names = {.lookup = input_lookup, .name_at = input_name_at, .context = &input}};
  HF_TRY(session_with_planner(s, parse, &call, error));
  *out = call.parsed;
  return HF_OK;
}
