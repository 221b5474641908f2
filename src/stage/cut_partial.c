/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One aggregate in two steps: what each task computes, and what becomes of it.
 * The functions are rows of cut_aggregate.def; the operator is cut_aggregate.c.
 * Thread: any, as the door.
 */
#include "stage/cut_internal.h"

#include "base/fault.h"

#include <math.h>
#include <string.h>

static const aggregate_rule rules[] = {
#define IS_ZERO_NOTHING false
#define IS_ZERO_ZERO true
#define ORDER_OF_FREE false
#define ORDER_OF_ORDERED true
#define CUT_AGGREGATE(function, partial, merge, final, empty, order) \
  {function, PARTIAL_##partial, merge, FINAL_##final, IS_ZERO_##empty, ORDER_OF_##order},
#include "stage/cut_aggregate.def"
};

const aggregate_rule *partial_rule(const char *function) {
  size_t low = 0, high = sizeof rules / sizeof rules[0];
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = strcmp(function, rules[middle].function);
    if (order == 0) {
      return &rules[middle];
    }
    low = order > 0 ? middle + 1 : low;
    high = order > 0 ? high : middle;
  }
  return NULL;
}

bool cut_aggregate_is_ordered(const tree_call *call) {
  const aggregate_rule *rule = partial_rule(call->name);
  return call->n_orders == 0 && (rule == NULL || rule->is_ordered);
}

bool partial_is_possible(const tree_expression *e, bool together) {
  const tree_call *call = e->call;
  const aggregate_rule *rule = partial_rule(call->name);
  if (e->kind != EXPRESSION_AGGREGATE || rule == NULL || rule->partial == PARTIAL_RAW || call->n_orders > 0 ||
      call->n_quantiles > 0 || call->separator != NULL ||
      e->n_children > (rule->partial == PARTIAL_BY ? 2 : 1) ||
      (call->distinct && !together && !FAULT("stage.distinct_apart"))) {
    return false;
  }
  if (rule->partial != PARTIAL_SAME && cut_is_volatile(e)) { /* several columns would be of other draws */
    return false;
  }
  bool is_number = e->type->kind == TYPE_DOUBLE;
  bool is_minmax = strcmp(call->name, "min") == 0 || strcmp(call->name, "max") == 0;
  switch (rule->partial) {
    case PARTIAL_AVERAGE:
    case PARTIAL_MOMENTS:
      return is_number && e->n_children == 1 && !(call->distinct && rule->partial == PARTIAL_MOMENTS);
    case PARTIAL_BY:
      return e->n_children == 2 && !call->distinct;
    default:
      return !is_minmax || e->n_children == 1;
  }
}

/* ----------------------------------------------------------------- partial */

/* An aggregate of the same argument, DISTINCT and filter. */
static const tree_expression *beside(cutter *c, const tree_expression *e, const char *name,
                                     const data_type *type) {
  tree_call *call = arena_alloc(c->a, sizeof *call);
  tree_expression made = *e;
  if (call == NULL) {
    c->is_out_of_memory = true;
    return e;
  }
  *call = (tree_call){.name = name, .distinct = e->call->distinct, .filter = e->call->filter};
  made.call = call;
  made.type = type;
  return cut_make(c, &made);
}

/* The value that chose arg_min(x, y): min(y) of the rows that it does not pass over, which are those with an x. */
static const tree_expression *chosen_by(cutter *c, const tree_expression *e, const char *name) {
  const tree_expression *has = cut_operator(c, OPERATOR_IS_NOT_NULL, &cut_boolean, e->children[0], NULL);
  const tree_expression **both = NULL;
  tree_call *call = arena_alloc(c->a, sizeof *call);
  if (call == NULL || cut_pointers(c, 2, &both) != HF_OK) {
    c->is_out_of_memory = true;
    return e;
  }
  *call = (tree_call){.name = name, .filter = has};
  if (e->call->filter != NULL) {
    both[0] = e->call->filter;
    both[1] = has;
    call->filter = cut_make(
        c, &(tree_expression){
               .kind = EXPRESSION_CONJUNCTION, .type = &cut_boolean, .n_children = 2, .children = both});
  }
  return cut_make(c, &(tree_expression){.kind = EXPRESSION_AGGREGATE,
                                        .type = e->children[1]->type,
                                        .n_children = 1,
                                        .children = &e->children[1],
                                        .call = call});
}

/* sum of integers is a HUGEINT, of decimals a DECIMAL of the largest width. */
static const data_type *type_of_sum(cutter *c, const data_type *type) {
  if (type->kind == TYPE_DOUBLE || type->kind == TYPE_FLOAT) {
    return &cut_double;
  }
  if (type->kind != TYPE_DECIMAL) {
    return &cut_hugeint;
  }
  data_type *made = arena_alloc(c->a, sizeof *made);
  if (made == NULL) {
    c->is_out_of_memory = true;
    return type;
  }
  *made = *type;
  made->width = 38;
  return made;
}

static const tree_expression *binary(cutter *c, const char *name, const tree_expression *a,
                                     const tree_expression *b) {
  return cut_call(c, EXPRESSION_FUNCTION, name, &cut_double, a, b);
}

size_t partial_columns(cutter *c, const tree_expression *e, const tree_expression *out[MOST_PARTIALS]) {
  const aggregate_rule *rule = partial_rule(e->call->name);
  switch (rule->partial) {
    case PARTIAL_COUNTED: {
      tree_expression seen = *e;
      seen.n_children = 0;
      out[0] = e;
      out[1] = beside(c, &seen, "count_star", &cut_bigint);
      return 2;
    }
    case PARTIAL_BY:
      out[0] = e;
      out[1] = chosen_by(c, e, rule->merge);
      return 2;
    case PARTIAL_AVERAGE:
      out[0] = beside(c, e, "sum", type_of_sum(c, e->children[0]->type));
      out[1] = beside(c, e, "count", &cut_bigint);
      return 2;
    case PARTIAL_MOMENTS:
      out[0] = cut_cast(c, beside(c, e, "count", &cut_bigint), &cut_double);
      out[1] = beside(c, e, "avg", &cut_double);
      out[2] = binary(c, "*", beside(c, e, "var_pop", &cut_double), out[0]);
      return 3;
    default:
      out[0] = e;
      return 1;
  }
}

/* ------------------------------------------------------------------- final */

static const tree_expression *merged(cutter *c, const char *name, size_t at, const data_type *type,
                                     const data_type *as) {
  return cut_call(c, EXPRESSION_AGGREGATE, name, as, cut_ref(c, at, type), NULL);
}

/* The digits without the point: the exact number, divided once. */
static const tree_expression *unscaled(cutter *c, const tree_expression *sum) {
  static const tree_value point = {.type = &cut_varchar, .text = ".", .length = 1};
  static const tree_value none = {.type = &cut_varchar, .text = "", .length = 0};
  const tree_expression **children = NULL;
  tree_call *call = arena_alloc(c->a, sizeof *call);
  if (call == NULL || cut_pointers(c, 3, &children) != HF_OK) {
    c->is_out_of_memory = true;
    return sum;
  }
  call->name = "replace";
  children[0] = cut_cast(c, sum, &cut_varchar);
  children[1] =
      cut_make(c, &(tree_expression){.kind = EXPRESSION_CONSTANT, .type = &cut_varchar, .value = &point});
  children[2] =
      cut_make(c, &(tree_expression){.kind = EXPRESSION_CONSTANT, .type = &cut_varchar, .value = &none});
  const tree_expression *digits = cut_make(c, &(tree_expression){.kind = EXPRESSION_FUNCTION,
                                                                 .type = &cut_varchar,
                                                                 .n_children = 3,
                                                                 .children = children,
                                                                 .call = call});
  return cut_cast(c, digits, &cut_hugeint);
}

static const tree_expression *real(cutter *c, double value) {
  tree_value *made = arena_alloc(c->a, sizeof *made);
  if (made == NULL) {
    c->is_out_of_memory = true;
    return cut_number(c, 0, &cut_double);
  }
  *made = (tree_value){.type = &cut_double, .number = value};
  return cut_make(c, &(tree_expression){.kind = EXPRESSION_CONSTANT, .type = &cut_double, .value = made});
}

/* As DuckDB divides: by the count times the power of ten that the decimals stand for. */
static const tree_expression *quotient(cutter *c, const tree_expression *const *partials, size_t first) {
  const data_type *type = partials[0]->type;
  const tree_expression *sum = merged(c, "sum", first, type, type);
  const tree_expression *n = cut_cast(c, merged(c, "sum", first + 1, &cut_bigint, &cut_hugeint), &cut_double);
  if (type->kind == TYPE_DECIMAL) {
    sum = unscaled(c, sum);
    n = binary(c, "*", n, real(c, pow(10, type->scale + (FAULT("stage.decimal_scale") ? 1 : 0))));
  }
  return binary(c, "/", cut_cast(c, sum, &cut_double), n);
}

const tree_expression *partial_mean(cutter *c, size_t first, const cut_keys *groups) {
  const tree_expression *n = cut_ref(c, first, &cut_double), *mean = cut_ref(c, first + 1, &cut_double);
  const tree_expression *sums[] = {binary(c, "*", n, mean), n};
  for (size_t i = 0; i < 2; i++) {
    const tree_expression *sum = cut_call(c, EXPRESSION_AGGREGATE, "sum", &cut_double, sums[i], NULL);
    tree_window *window = arena_alloc(c->a, sizeof *window);
    if (window == NULL) {
      c->is_out_of_memory = true;
      return n;
    }
    *window = (tree_window){.function = WINDOW_AGGREGATE,
                            .call = sum->call,
                            .n_partitions = groups->n,
                            .partitions = groups->keys,
                            .start = BOUND_UNBOUNDED_PRECEDING,
                            .end = BOUND_UNBOUNDED_FOLLOWING};
    tree_expression over = *sum;
    over.kind = EXPRESSION_WINDOW;
    over.window = window;
    sums[i] = cut_make(c, &over);
  }
  return binary(c, "/", sums[0], sums[1]);
}

/* The differences from the tasks' means, moved to the whole group's mean: no difference of large sums is taken. */
static const tree_expression *spread(cutter *c, final_kind kind, size_t first, const tree_expression *mean) {
  bool is_sample = kind == FINAL_STDDEV_SAMP || kind == FINAL_VAR_SAMP;
  const tree_expression *n = cut_ref(c, first, &cut_double);
  const tree_expression *apart = binary(c, "-", cut_ref(c, first + 1, &cut_double), mean);
  const tree_expression *moved =
      binary(c, "+", cut_ref(c, first + 2, &cut_double), binary(c, "*", n, binary(c, "*", apart, apart)));
  const tree_expression *squares = cut_call(c, EXPRESSION_AGGREGATE, "sum", &cut_double, moved, NULL);
  const tree_expression *count = merged(c, "sum", first, &cut_double, &cut_double);
  const tree_expression *by = is_sample ? binary(c, "-", count, real(c, 1)) : count;
  const tree_expression *value = binary(c, "/", squares, by);
  if (kind == FINAL_STDDEV_SAMP || kind == FINAL_STDDEV_POP) {
    value = cut_call(c, EXPRESSION_FUNCTION, "sqrt", &cut_double, value, NULL);
  }
  return cut_case(c, cut_compare(c, COMPARE_GREATER, count, real(c, is_sample ? 1 : 0)), value);
}

/* One that saw no row has no say. */
static const tree_expression *first_counted(cutter *c, const tree_expression *e, const aggregate_rule *rule,
                                            size_t first) {
  const tree_expression *value = merged(c, rule->merge, first, e->type, e->type);
  tree_call *call = arena_alloc(c->a, sizeof *call);
  if (call == NULL) {
    c->is_out_of_memory = true;
    return value;
  }
  *call = *value->call;
  call->filter =
      cut_compare(c, COMPARE_GREATER, cut_ref(c, first + 1, &cut_bigint), cut_number(c, 0, &cut_bigint));
  tree_expression made = *value;
  made.call = call;
  return cut_make(c, &made);
}

const tree_expression *partial_final(cutter *c, const tree_expression *e,
                                     const tree_expression *const *partials, size_t first,
                                     const tree_expression *mean) {
  const aggregate_rule *rule = partial_rule(e->call->name);
  switch (rule->partial) {
    case PARTIAL_COUNTED:
      return first_counted(c, e, rule, first);
    case PARTIAL_BY:
      return cut_call(c, EXPRESSION_AGGREGATE, e->call->name, e->type, cut_ref(c, first, e->type),
                      cut_ref(c, first + 1, partials[1]->type));
    case PARTIAL_AVERAGE:
      return cut_cast(c, quotient(c, partials, first), e->type);
    case PARTIAL_MOMENTS:
      return cut_cast(c, spread(c, rule->final, first, mean), e->type);
    default:
      break;
  }
  const char *merge = FAULT("stage.final_twice") ? e->call->name : rule->merge;
  const tree_expression *value = merged(c, merge, first, e->type, e->type);
  if (!rule->is_zero_of_none) {
    return value;
  }
  return cut_operator(c, OPERATOR_COALESCE, e->type, value, cut_number(c, 0, e->type));
}
