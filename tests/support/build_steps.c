/* SPDX-License-Identifier: Apache-2.0 */
/* Relations built by a line of text; see build_steps.h. */
#include "support/build_steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_ARGUMENTS = 64 };

typedef struct step_text {
  char *kind;
  build_expression first[MOST_ARGUMENTS], second[MOST_ARGUMENTS]; /* before and behind " ; " */
  size_t n_first, n_second;
} step_text;

static char *trim(char *text) {
  text += strspn(text, " ");
  for (size_t n = strlen(text); n > 0 && text[n - 1] == ' '; n--) {
    text[n - 1] = '\0';
  }
  return text;
}

static size_t split(char *text, build_expression *out) {
  size_t n = 0;
  text = trim(text);
  while (*text != '\0' && n < MOST_ARGUMENTS) {
    char *bar = strstr(text, " | ");
    if (bar != NULL) {
      *bar = '\0';
    }
    out[n++] = (build_expression){.text = trim(text)};
    if (bar == NULL) {
      break;
    }
    text = bar + 3;
  }
  return n;
}

static step_text read_step(plan_case *c, const char *step) {
  step_text out = {.kind = arena_strdup(c->memory, plan_text(c, step))};
  char *rest = strchr(out.kind, ':');
  if (rest == NULL) {
    return out;
  }
  *rest++ = '\0';
  char *second = strstr(rest, " ; ");
  if (second != NULL) {
    *second = '\0';
    out.n_second = split(second + 3, out.second);
  }
  out.n_first = split(rest, out.first);
  return out;
}

static const struct {
  const char *name;
  build_kind kind;
  int other; /* join_type, set_type */
} KINDS[] = {
    {"project", BUILD_PROJECT, -1},
    {"filter", BUILD_FILTER, -1},
    {"with", BUILD_WITH_COLUMNS, -1},
    {"rename", BUILD_RENAME, -1},
    {"drop", BUILD_DROP, -1},
    {"agg", BUILD_AGGREGATE, -1},
    {"sort", BUILD_SORT, -1},
    {"limit", BUILD_LIMIT, -1},
    {"distinct", BUILD_DISTINCT, -1},
    {"alias", BUILD_ALIAS, -1},
    {"repartition", BUILD_REPARTITION, -1},
    {"union", BUILD_SET, SET_TYPE_UNION},
    {"unionall", BUILD_SET, SET_TYPE_UNION},
    {"byname", BUILD_SET, SET_TYPE_UNION},
    {"intersect", BUILD_SET, SET_TYPE_INTERSECT},
    {"intersectall", BUILD_SET, SET_TYPE_INTERSECT},
    {"except", BUILD_SET, SET_TYPE_EXCEPT},
    {"exceptall", BUILD_SET, SET_TYPE_EXCEPT},
    {"join", BUILD_JOIN, JOIN_TYPE_INNER},
    {"left", BUILD_JOIN, JOIN_TYPE_LEFT},
    {"right", BUILD_JOIN, JOIN_TYPE_RIGHT},
    {"full", BUILD_JOIN, JOIN_TYPE_FULL},
    {"semi", BUILD_JOIN, JOIN_TYPE_SEMI},
    {"anti", BUILD_JOIN, JOIN_TYPE_ANTI},
    {"cross", BUILD_JOIN, JOIN_TYPE_CROSS},
};

/* name = expression: the first part is the name, of what is made. */
static void take_names(step_text *t, bool old_first) {
  for (size_t i = 0; i < t->n_first; i++) {
    char *equals = strstr(t->first[i].text, " = ");
    if (equals == NULL) {
      continue;
    }
    const char *left = t->first[i].text;
    *equals = '\0';
    t->first[i] = old_first ? (build_expression){left, equals + 3} : (build_expression){equals + 3, left};
  }
}

const schema *steps_columns(plan_case *c, const relation *r) {
  if (relation_columns(r) != NULL && relation_is_checked(r)) {
    return relation_columns(r);
  }
  lowered l = plan_lowered(c, r);
  schema *found = arena_alloc(c->memory, sizeof *found);
  if (plan_describe(c->planner, &l, c->memory, found, &c->error) != HF_OK) {
    return NULL;
  }
  assert_int_equal(relation_look(r).kind == RELATION_BUILT ? relation_settle(r, found, &c->error)
                                                           : relation_remember_columns(r, found, &c->error),
                   HF_OK);
  return relation_columns(r);
}

static relation *named(plan_case *c, const char *name) {
  for (size_t i = 0; i < c->n_names; i++) {
    if (strcmp(c->names[i], name) == 0) {
      return relation_retain(c->bound[i]);
    }
  }
  fail_msg("no relation of the case is called so: %s", name);
  return NULL;
}

static void fill(plan_case *c, step_text *t, build_step *step, relation **other) {
  const char *word = t->kind;
  if (step->kind == BUILD_WITH_COLUMNS || step->kind == BUILD_RENAME) {
    take_names(t, step->kind == BUILD_RENAME);
  }
  step->expressions = t->first;
  step->n_expressions = t->n_first;
  if (step->kind == BUILD_AGGREGATE) {
    step->groups = t->first;
    step->n_groups = t->n_first;
    step->expressions = t->second;
    step->n_expressions = t->n_second;
  } else if (step->kind == BUILD_LIMIT) {
    char *end = NULL;
    step->has_limit = t->first[0].text[0] != ',';
    step->limit = strtoull(t->first[0].text, &end, 10);
    step->offset = *end == ',' ? strtoull(end + 1, NULL, 10) : 0;
    step->n_expressions = 0;
  } else if (step->kind == BUILD_REPARTITION) { /* the number, then the columns */
    step->limit = strtoull(t->first[0].text, NULL, 10);
    step->expressions = t->first + 1;
    step->n_expressions = t->n_first - 1;
  } else if (step->kind == BUILD_ALIAS) {
    step->name = t->first[0].text;
    step->n_expressions = 0;
  } else if (step->kind == BUILD_SET || step->kind == BUILD_JOIN) {
    *other = named(c, t->first[0].text);
    step->other = *other;
    step->expressions = t->second;
    step->n_expressions = t->n_second;
    step->all = strstr(word, "all") != NULL || strcmp(word, "byname") == 0;
    step->by_name = strcmp(word, "byname") == 0;
  }
  if (step->kind == BUILD_JOIN && t->n_second > 0 && strncmp(t->second[0].text, "USING ", 6) == 0) {
    const char **names = arena_array(c->memory, t->n_second, sizeof *names);
    for (size_t i = 0; i < t->n_second; i++) {
      names[i] = t->second[i].text + (i == 0 ? 6 : 0);
    }
    step->using_columns = names;
    step->n_using = t->n_second;
    step->n_expressions = 0;
  }
}

relation *step_add(plan_case *c, relation *input, const char *text) {
  step_text t = read_step(c, text);
  build_step step = {.input = input};
  relation *other = NULL, *out = NULL;
  size_t i = 0;
  while (i < sizeof KINDS / sizeof KINDS[0] && strcmp(KINDS[i].name, t.kind) != 0) {
    i++;
  }
  assert_true(i < sizeof KINDS / sizeof KINDS[0]);
  step.kind = KINDS[i].kind;
  step.join = step.kind == BUILD_JOIN ? (join_type)KINDS[i].other : JOIN_TYPE_INNER;
  step.set = step.kind == BUILD_SET ? (set_type)KINDS[i].other : SET_TYPE_UNION;
  fill(c, &t, &step, &other);
  relation_names names = plan_names(c);
  hf_error_reset(&c->error);
  step.columns = steps_columns(c, input);
  step.other_columns = other == NULL ? NULL : steps_columns(c, other);
  hf_status status = plan_build(c->planner, &step, &names, &out, &c->error);
  relation_release(input);
  relation_release(other);
  if (status != HF_OK) {
    return NULL;
  }
  if (steps_columns(c, out) == NULL) {
    relation_release(out);
    return NULL;
  }
  return out;
}

relation *steps_build(plan_case *c, const char *line) {
  char *text = arena_strdup(c->memory, line);
  char *step = strstr(text, " >> ");
  if (step != NULL) {
    *step = '\0';
    step += 4;
  }
  relation *r = named(c, trim(text));
  while (step != NULL) {
    char *next = strstr(step, " >> ");
    if (next != NULL) {
      *next = '\0';
    }
    r = step_add(c, r, trim(step));
    if (r == NULL) {
      fail_msg("%s: %s: %s %s", line, step, hf_status_name(c->error.code), c->error.message);
    }
    step = next == NULL ? NULL : next + 4;
  }
  return r;
}

const char *steps_rows(plan_case *c, const relation *r) {
  lowered l = plan_lowered(c, r);
  return plan_rows(c, plan_whole_text(c, &l));
}

const char *steps_shape(plan_case *c, const relation *r) {
  const schema *columns = relation_columns(r);
  buf text = {0};
  for (size_t i = 0; i < columns->n_columns; i++) {
    buf_printf(&text, "%s%s ", i == 0 ? "" : ", ", columns->columns[i].name);
    data_type_to_sql(columns->columns[i].type, &text);
  }
  const char *copy = arena_strndup(c->memory, buf_cstr(&text), text.length);
  buf_reset(&text);
  return copy;
}
