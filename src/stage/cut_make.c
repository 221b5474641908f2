/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes and expressions that the cutter makes. Lack of memory is noted once in
 * the cutter and asked about when a stage is made.
 * Thread: any, as the door.
 */
#include "stage/cut_internal.h"

#include <stdio.h>
#include <string.h>

const data_type cut_bigint = {.kind = TYPE_BIGINT};
const data_type cut_hugeint = {.kind = TYPE_HUGEINT};
const data_type cut_ubigint = {.kind = TYPE_UBIGINT};
const data_type cut_uinteger = {.kind = TYPE_UINTEGER};
const data_type cut_integer = {.kind = TYPE_INTEGER};
const data_type cut_double = {.kind = TYPE_DOUBLE};
const data_type cut_boolean = {.kind = TYPE_BOOLEAN};
const data_type cut_varchar = {.kind = TYPE_VARCHAR};

hf_status cut_array(cutter *c, size_t n, size_t bytes, void *out) {
  void *made = arena_array(c->a, n + 1, bytes); /* never of no bytes */
  if (made == NULL) {
    return error_set(c->error, HF_E_OUT_OF_MEMORY, "no memory to cut a plan into stages");
  }
  memcpy(out, &made, sizeof made);
  return HF_OK;
}

hf_status cut_pointers(cutter *c, size_t n, void *out) {
  return cut_array(c, n, sizeof(void *), out);
}

hf_status cut_make_node(cutter *c, const tree_node *like, const tree_node **out) {
  tree_node *made = NULL;
  HF_TRY(cut_array(c, 1, sizeof *made, &made));
  *made = *like;
  *out = made;
  return HF_OK;
}

const char *cut_text(cutter *c, const char *format, ...) {
  char text[300];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const char *made = arena_strdup(c->a, text);
  c->is_out_of_memory |= made == NULL;
  return made == NULL ? "" : made;
}

/* ------------------------------------------------------------- expressions */

static void *take(cutter *c, size_t n, size_t bytes) {
  void *made = arena_array(c->a, n, bytes);
  c->is_out_of_memory |= made == NULL;
  return made;
}

const tree_expression *cut_make(cutter *c, const tree_expression *like) {
  static const tree_expression nothing = {.kind = EXPRESSION_REF, .type = &cut_bigint};
  tree_expression *made = take(c, 1, sizeof *made);
  if (made == NULL) {
    return &nothing;
  }
  *made = *like;
  return made;
}

static const tree_expression *make_over(cutter *c, const tree_expression *like, const tree_expression *first,
                                        const tree_expression *second) {
  size_t n = (first != NULL) + (size_t)(second != NULL);
  const tree_expression **children = take(c, 2, sizeof(void *));
  tree_expression made = *like;
  if (children != NULL) {
    children[0] = first;
    children[1] = second;
    made.n_children = n;
    made.children = children;
  }
  return cut_make(c, &made);
}

const tree_expression *cut_ref(cutter *c, size_t at, const data_type *type) {
  return cut_make(c, &(tree_expression){.kind = EXPRESSION_REF, .type = type, .ref = at});
}

const tree_expression *cut_cast(cutter *c, const tree_expression *e, const data_type *type) {
  const tree_expression like = {.kind = EXPRESSION_CAST, .type = type};
  return data_type_equal(e->type, type) ? e : make_over(c, &like, e, NULL);
}

const tree_expression *cut_number(cutter *c, uint64_t value, const data_type *type) {
  tree_value *made = take(c, 1, sizeof *made);
  if (made != NULL) {
    *made = (tree_value){.type = type, .lower = value, .number = (double)value};
  }
  return cut_make(c, &(tree_expression){.kind = EXPRESSION_CONSTANT, .type = type, .value = made});
}

const tree_expression *cut_call(cutter *c, tree_expression_kind kind, const char *name, const data_type *type,
                                const tree_expression *first, const tree_expression *second) {
  tree_call *call = take(c, 1, sizeof *call);
  if (call != NULL) {
    call->name = name;
  }
  return make_over(c, &(tree_expression){.kind = kind, .type = type, .call = call}, first, second);
}

const tree_expression *cut_operator(cutter *c, tree_operator operator, const data_type * type,
                                    const tree_expression *first, const tree_expression *second) {
  const tree_expression like = {.kind = EXPRESSION_OPERATOR, .type = type, .operator= operator};
  return make_over(c, &like, first, second);
}

const tree_expression *cut_compare(cutter *c, tree_comparison comparison, const tree_expression *left,
                                   const tree_expression *right) {
  const tree_expression like = {
      .kind = EXPRESSION_COMPARISON, .type = &cut_boolean, .comparison = comparison};
  return make_over(c, &like, left, right);
}

const tree_expression *cut_case(cutter *c, const tree_expression *when, const tree_expression *then) {
  const tree_expression **children = take(c, 3, sizeof(void *));
  tree_value *null = take(c, 1, sizeof *null);
  if (children == NULL || null == NULL) {
    return then;
  }
  *null = (tree_value){.type = then->type, .is_null = true};
  children[0] = when;
  children[1] = then;
  children[2] =
      cut_make(c, &(tree_expression){.kind = EXPRESSION_CONSTANT, .type = then->type, .value = null});
  return cut_make(c, &(tree_expression){
                         .kind = EXPRESSION_CASE, .type = then->type, .n_children = 3, .children = children});
}

hf_status cut_refs(cutter *c, const tree_node *node, const tree_expression ***out, size_t n_more) {
  const tree_expression **refs = NULL;
  HF_TRY(cut_pointers(c, node->n_columns + n_more, &refs));
  for (size_t i = 0; i < node->n_columns; i++) {
    refs[i] = cut_ref(c, i, node->types[i]);
  }
  *out = refs;
  return HF_OK;
}
