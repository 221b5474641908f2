/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plan of a query says of the rows that it wants of its held inputs:
 * conditions `column op constant` that stand right above the only scan of an input.
 * Blocks of which the index tells that no row meets them need not be read. The
 * query itself stays as it is, so a condition that is not found costs time only.
 * Thread: a planning thread.
 */
#include "scheduler/scheduler_internal.h"

#include "exchange/exchange.h"

#include <stdlib.h>
#include <string.h>

/* Of fewer bytes a look at the plan costs about what could be saved. */
#define WORTH_BYTES ((uint64_t)8 << 20)
enum { FILTERS_AT_MOST = 32 }; /* of an input */

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to plan");
}

/* ------------------------------------------------------------------ conditions */

static bool key_of(const tree_value *value, range_kind kind, range_key *out) {
  if (value->is_null) {
    return false;
  }
  switch (kind) {
    case RANGE_INT32:
    case RANGE_INT64:
      *out = range_key_signed((int64_t)value->lower);
      return true;
    case RANGE_UINT32:
    case RANGE_UINT64:
      *out = range_key_unsigned(value->lower);
      return true;
    case RANGE_FLOAT:
    case RANGE_DOUBLE:
      *out = range_key_double(value->number);
      return true;
    case RANGE_BYTES: /* a BLOB's text is how DuckDB prints it */
      *out = value->text == NULL ? (range_key){0, 0} : range_key_bytes(value->text, value->length);
      return value->text != NULL && value->type->kind == TYPE_VARCHAR;
    default:
      return false;
  }
}

static void add(planned_pruning *to, size_t column_number, range_op op, range_key key) {
  if (to->n_filters < FILTERS_AT_MOST) {
    to->filters[to->n_filters++] =
        (stage_filter){.column = (uint32_t)column_number, .op = op, .key_high = key.high, .key_low = key.low};
  }
}

/* The source's column that an expression is, or SIZE_MAX. */
static size_t column_of(const tree_scan *scan, const tree_expression *e) {
  if (e->kind != EXPRESSION_REF || e->ref >= scan->n_scanned) {
    return SIZE_MAX;
  }
  const tree_scan_column *scanned = &scan->scanned[e->ref];
  bool is_plain = scanned->kind == SCAN_COLUMN && scanned->n_path == 0 && scanned->column < scan->n_source;
  return is_plain ? scanned->column : SIZE_MAX;
}

static void note_bound(planned_pruning *to, const tree_scan *scan, const tree_expression *input,
                       const tree_expression *constant, range_op op) {
  size_t number = column_of(scan, input);
  range_key key;
  if (number == SIZE_MAX || constant->kind != EXPRESSION_CONSTANT ||
      !data_type_equal(constant->value->type, scan->source_types[number]) ||
      !key_of(constant->value, range_kind_of(scan->source_types[number]), &key)) {
    return;
  }
  add(to, number, op, key);
}

static void note_comparison(planned_pruning *to, const tree_scan *scan, const tree_expression *e) {
  bool is_turned = e->children[0]->kind == EXPRESSION_CONSTANT;
  const tree_expression *input = e->children[is_turned ? 1 : 0];
  const tree_expression *constant = e->children[is_turned ? 0 : 1];
  switch (e->comparison) {
    case COMPARE_EQUAL:
      note_bound(to, scan, input, constant, RANGE_EQUAL);
      return;
    case COMPARE_LESS:
    case COMPARE_LESS_EQUAL:
      note_bound(to, scan, input, constant, is_turned ? RANGE_MORE : RANGE_LESS);
      return;
    case COMPARE_GREATER:
    case COMPARE_GREATER_EQUAL:
      note_bound(to, scan, input, constant, is_turned ? RANGE_LESS : RANGE_MORE);
      return;
    default:
      return;
  }
}

static void note_operator(planned_pruning *to, const tree_scan *scan, const tree_expression *e) {
  size_t number = e->n_children == 1 ? column_of(scan, e->children[0]) : SIZE_MAX;
  if (number == SIZE_MAX) {
    return;
  }
  if (e->operator== OPERATOR_IS_NULL) {
    add(to, number, RANGE_IS_NULL, (range_key){0, 0});
  } else if (e->operator== OPERATOR_IS_NOT_NULL) {
    add(to, number, RANGE_IS_NOT_NULL, (range_key){0, 0});
  }
}

static void note_condition(planned_pruning *to, const tree_scan *scan, const tree_expression *e) {
  if (e->kind == EXPRESSION_COMPARISON) {
    note_comparison(to, scan, e);
  } else if (e->kind == EXPRESSION_BETWEEN) {
    note_bound(to, scan, e->children[0], e->children[1], RANGE_MORE);
    note_bound(to, scan, e->children[0], e->children[2], RANGE_LESS);
  } else if (e->kind == EXPRESSION_OPERATOR) {
    note_operator(to, scan, e);
  } else if (e->kind == EXPRESSION_CONJUNCTION && !e->is_or) {
    for (size_t i = 0; i < e->n_children; i++) {
      note_condition(to, scan, e->children[i]);
    }
  }
}

/* ----------------------------------------------------------------------- tree */

/* The input that a scan reads, or SIZE_MAX. */
static size_t input_of(const planning *p, const tree_scan *scan) {
  if (strcmp(scan->function, "hf_scan") != 0 || scan->n_parameters != 1 || scan->parameters[0].text == NULL) {
    return SIZE_MAX;
  }
  size_t number = (size_t)strtoul(scan->parameters[0].text, NULL, 10);
  return number < p->query.n_inputs ? number : SIZE_MAX;
}

static void note_scan(planning *p, const tree_node *node, const tree_node *above) {
  size_t number = input_of(p, node->scan);
  if (number == SIZE_MAX || p->query.inputs[number].kind != LOWER_INPUT_HELD) {
    return;
  }
  planned_pruning *to = &p->pruning[number];
  if (to->n_scans++ > 0) {
    to->n_filters = 0; /* another scan may want other rows */
    return;
  }
  for (size_t i = 0; above != NULL && above->kind == TREE_FILTER && i < above->n_expressions; i++) {
    note_condition(to, node->scan, above->expressions[i]);
  }
}

static void walk(planning *p, const tree_node *node, const tree_node *above) {
  if (node->kind == TREE_GET && node->scan != NULL) {
    note_scan(p, node, above);
  }
  for (size_t i = 0; i < node->n_children; i++) {
    walk(p, node->children[i], node);
  }
}

hf_status pruning_note(planning *p, const tree_node *root, hf_error *error) {
  size_t n = p->query.n_inputs;
  p->pruning = arena_array(p->memory, n, sizeof *p->pruning);
  for (size_t i = 0; p->pruning != NULL && i < n; i++) {
    if (p->query.inputs[i].kind == LOWER_INPUT_HELD) {
      p->pruning[i].filters = arena_array(p->memory, FILTERS_AT_MOST, sizeof(stage_filter));
      if (p->pruning[i].filters == NULL) {
        return no_memory(error);
      }
    }
  }
  if (p->pruning == NULL) {
    return no_memory(error);
  }
  walk(p, root, NULL);
  return HF_OK;
}

/* Whether a text holds what may be another value when the query runs, or means something else to the planner. */
static bool is_of_its_moment(const planning *p, const char *sql) {
  static const char *const parts[] = {"now",       "current",  "today", "timestamp(",
                                      "localtime", "variable", "clock"};
  bool found = false;
  for (size_t i = 0; !found && i < sizeof parts / sizeof parts[0]; i++) {
    found = strcasestr(sql, parts[i]) != NULL;
  }
  for (size_t i = 0; !found && i < p->settings->n_engine; i++) {
    found = strcmp(p->settings->engine[i].name, "integer_division") == 0 &&
            strcmp(p->settings->engine[i].value, "true") == 0;
  }
  return found;
}

/* Whether conditions are likely to be there, and blocks to be left out. */
static bool is_worth(const planning *p, const char *sql) {
  bool has_condition = strcasestr(sql, "where") != NULL && !is_of_its_moment(p, sql);
  uint64_t most = 0;
  for (size_t i = 0; has_condition && i < p->query.n_inputs; i++) {
    const lower_input *in = &p->query.inputs[i];
    if (in->kind == LOWER_INPUT_HELD) {
      uuid key = relation_look(in->cache_node).cache_id;
      const held_need *need = planning_need(p, &key);
      most = need != NULL && need->bytes > most ? need->bytes : most;
    }
  }
  return most >= WORTH_BYTES;
}

hf_status pruning_try(engine *planner_engine, planning *p, hf_error *error) {
  const char *sql = NULL, *json = NULL, *why = NULL;
  engine_scan *scans = NULL;
  const tree_node *root = NULL;
  tree_refusal refusal = {0};
  HF_TRY(plan_text_for_planner(&p->query, p->memory, &sql, &scans, error));
  if (!is_worth(p, sql)) {
    return HF_OK;
  }
  engine_set_scans(planner_engine, scans, p->query.n_inputs);
  hf_status status = engine_plan_json(planner_engine, sql, p->memory, &json, &why, error);
  engine_set_scans(planner_engine, NULL, 0);
  if (status == HF_E_CANCELLED || status == HF_E_OUT_OF_MEMORY || status == HF_E_INTERNAL) {
    return status;
  }
  if (status !=
      HF_OK) { /* without a plan all blocks are read; what is wrong with the query, it says itself */
    hf_error_reset(error);
    return HF_OK;
  }
  if (json != NULL) {
    HF_TRY(plan_tree_read(json, strlen(json), p->memory, &root, &refusal, error));
  }
  return root == NULL ? HF_OK : pruning_note(p, root, error);
}
