/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements: each kind is a row with the function that carries it out. Queries
 * become relations here; a command runs and its answer becomes one.
 * Thread: any.
 */
#include "session/session_internal.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

/* One statement on its way. */
typedef struct command {
  session *session;
  const char *sql;
  const statement *read;
  const job_watch *watch;
  hf_profile *profile;
} command;

/* -------------------------------------------------------------------- views */

/* One try; *done is false when another thread changed the name meanwhile. */
static hf_status put_in(session *s, const name_list *list, const name_entry *entry, bool replace, bool *done,
                        hf_error *error) {
  const name_entry *present = name_list_find(list, entry->name);
  if (present != NULL && !replace) {
    return error_set(error, HF_E_NAME_EXISTS, "the name is taken in this session: %s", present->name);
  }
  HF_TRY(names_exchange(&s->names, entry->name, present == NULL ? NULL : present->bound, entry, done, error));
  hf_status status = *done ? durable_name(s, entry->name, error) : HF_OK;
  if (status != HF_OK) {
    name_undo(s, entry, present);
    return status;
  }
  if (*done && present != NULL && (present->cache_made || present->plain != NULL)) {
    hold_release(s, present->bound, HOLD_WAIT_NOT);
  }
  return HF_OK;
}

hf_status view_put(session *s, const relation *r, const char *name, bool replace, hf_error *error) {
  if (name[0] == '\0') {
    return error_set(error, HF_E_INVALID_ARGUMENT, "the name of a view is empty");
  }
  if (!utf8_is_right(name)) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "the name of a view is not UTF-8");
  }
  name_entry entry = {.name = name, .bound = r};
  for (bool done = false; !done;) {
    name_list *list = names_snapshot(&s->names);
    hf_status status = put_in(s, list, &entry, replace, &done, error);
    name_list_release(list);
    HF_TRY(status);
  }
  return HF_OK;
}

hf_status session_create_view(session *s, const relation *r, const char *name, bool replace,
                              hf_error *error) {
  HF_TRY(session_enter(s, error));
  return session_leave(s, view_put(s, r, name, replace, error));
}

/* ----------------------------------------------------------------- commands */

/* Makes the position of an error in the query inside a statement one that counts from the statement's start. */
static hf_status in_statement(const command *c, hf_status status, hf_error *error) {
  if (status != HF_OK && error != NULL && error->position >= 0 && c->read->query != NULL) {
    error->position += c->read->query_position;
  }
  return status;
}

static hf_status inner_query(const command *c, relation **out, hf_error *error) {
  const char *text = c->read->query == NULL ? c->sql : c->read->query;
  return in_statement(c, query_relation_now(c->session, text, c->watch, out, error), error);
}

static hf_status run_query(const command *c, relation **out, hf_error *error) {
  return inner_query(c, out, error);
}

static hf_status run_cache_table(const command *c, relation **out, hf_error *error) {
  (void)out;
  relation *query = NULL;
  if (c->read->query != NULL) {
    HF_TRY(inner_query(c, &query, error));
  }
  cache_table_request request = {.name = c->read->name,
                                 .level = c->read->level,
                                 .partition_by = c->read->partition_by,
                                 .partitions = c->read->partitions,
                                 .query = query,
                                 .lazy = c->read->lazy,
                                 .watch = c->watch,
                                 .profile = c->profile};
  hf_status status = in_statement(c, cache_table(c->session, &request, error), error);
  if (query != NULL) {
    relation_release(query);
  }
  return status;
}

static hf_status run_uncache_table(const command *c, relation **out, hf_error *error) {
  (void)out;
  return uncache_table(c->session, c->read->name, c->read->if_exists, error);
}

static hf_status run_clear_cache(const command *c, relation **out, hf_error *error) {
  (void)out;
  return clear_cache(c->session, error);
}

static hf_status run_refresh_table(const command *c, relation **out, hf_error *error) {
  (void)out;
  return refresh_table(c->session, c->read->name, error);
}

static hf_status run_refresh_path(const command *c, relation **out, hf_error *error) {
  (void)out;
  return refresh_path(c->session, c->read->name, error);
}

static hf_status run_show_cache(const command *c, relation **out, hf_error *error) {
  return listing_holds(c->session, out, error);
}

static hf_status run_show_tables(const command *c, relation **out, hf_error *error) {
  return listing_names(c->session, out, error);
}

static hf_status run_show_setting(const command *c, relation **out, hf_error *error) {
  return listing_settings(c->session, c->read->name, out, error);
}

static hf_status run_create_view(const command *c, relation **out, hf_error *error) {
  (void)out;
  name_list *list = names_snapshot(&c->session->names);
  bool present = name_list_find(list, c->read->name) != NULL;
  name_list_release(list);
  if (present && c->read->if_not_exists) {
    return HF_OK;
  }
  relation *query = NULL; /* values of a PIVOT would be those of now */
  HF_TRY(in_statement(c, query_relation(c->session, c->read->query, &query, error), error));
  hf_status status = view_put(c->session, query, c->read->name, c->read->or_replace, error);
  relation_release(query);
  return status;
}

static hf_status drop_in(const command *c, const name_list *list, bool *done, hf_error *error) {
  session *s = c->session;
  const name_entry *present = name_list_find(list, c->read->name);
  *done = true;
  if (present == NULL) {
    return c->read->if_exists ? HF_OK
                              : name_list_missing(list, "no view has this name", c->read->name, error);
  }
  HF_TRY(names_exchange(&s->names, c->read->name, present->bound, NULL, done, error));
  if (*done) {
    HF_TRY(durable_name(s, c->read->name, error));
  }
  if (*done && (present->cache_made || present->plain != NULL)) {
    hold_release(s, present->bound, HOLD_WAIT_FILES);
  }
  return HF_OK;
}

static hf_status run_drop_view(const command *c, relation **out, hf_error *error) {
  (void)out;
  for (bool done = false; !done;) {
    name_list *list = names_snapshot(&c->session->names);
    hf_status status = drop_in(c, list, &done, error);
    name_list_release(list);
    HF_TRY(status);
  }
  return HF_OK;
}

static hf_status run_explain(const command *c, relation **out, hf_error *error) {
  relation *query = NULL;
  HF_TRY(inner_query(c, &query, error));
  char *text = NULL;
  hf_status status = c->read->analyze
                         ? session_explain_analyze(c->session, query, c->watch, c->profile, &text, error)
                         : session_explain(c->session, query, &text, error);
  relation_release(query);
  status = in_statement(c, status, error);
  if (status == HF_OK) {
    status = listing_plan(c->session, text, out, error);
  }
  mem_free(text);
  return status;
}

static hf_status run_set(const command *c, relation **out, hf_error *error) {
  (void)out;
  return session_set(c->session, c->read->name, c->read->value, error);
}

static hf_status run_reset(const command *c, relation **out, hf_error *error) {
  (void)out;
  return session_reset_setting(c->session, c->read->name, error);
}

static hf_status run_nothing(const command *c, relation **out, hf_error *error) {
  (void)c;
  (void)out;
  (void)error;
  return HF_OK;
}

/* ----------------------------------------------------------------- dispatch */

static hf_status (*const COMMANDS[])(const command *c, relation **out, hf_error *error) = {
    [STATEMENT_QUERY] = run_query,
    [STATEMENT_CACHE_TABLE] = run_cache_table,
    [STATEMENT_UNCACHE_TABLE] = run_uncache_table,
    [STATEMENT_CLEAR_CACHE] = run_clear_cache,
    [STATEMENT_REFRESH_TABLE] = run_refresh_table,
    [STATEMENT_REFRESH_PATH] = run_refresh_path,
    [STATEMENT_SHOW_CACHE] = run_show_cache,
    [STATEMENT_SHOW_TABLES] = run_show_tables,
    [STATEMENT_SHOW_SETTING] = run_show_setting,
    [STATEMENT_CREATE_VIEW] = run_create_view,
    [STATEMENT_DROP_VIEW] = run_drop_view,
    [STATEMENT_EXPLAIN] = run_explain,
    [STATEMENT_SET] = run_set,
    [STATEMENT_RESET] = run_reset,
    [STATEMENT_EMPTY] = run_nothing,
};

static hf_status sql_entered(command *c, arena *a, relation **out, hf_error *error) {
  statement read;
  HF_TRY(statement_read(c->sql, a, &read, error));
  c->read = &read;
  relation *answer = NULL;
  HF_TRY(COMMANDS[read.kind](c, &answer, error));
  *out = answer;
  return HF_OK;
}

hf_status session_sql(session *s, const char *sql, const job_watch *watch, hf_profile *profile,
                      relation **out, hf_error *error) {
  HF_TRY(session_enter(s, error));
  if (profile != NULL) {
    memset(profile, 0, sizeof *profile);
  }
  command c = {.session = s, .sql = sql, .watch = watch, .profile = profile};
  arena *a = arena_new();
  hf_status status = a == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory to read a statement")
                               : sql_entered(&c, a, out, error);
  arena_free(a);
  return session_leave(s, status);
}
