/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part becomes a stage, and its reader a leaf: SQL, inputs, the partition
 * column; gathers, broadcasts and exchanges.
 * Thread: any, as the door.
 */
#include "stage/cut_internal.h"

#include "base/fault.h"
#include "sql/write.h"

#include <string.h>

double cut_bytes(const cut_part *part) {
  return part->rows * tree_row_bytes(part->node);
}

/* ---------------------------------------------------------- why it is one */

const char cut_why_window[] = "window functions without a common PARTITION BY";
const char cut_why_positional[] = "POSITIONAL JOIN";
const char cut_why_all_rows[] = "an aggregate that needs all rows";
const char cut_why_sample[] = "SAMPLE of all rows together";
const char cut_why_order[] = "UNION ALL whose order matters";

bool cut_is_fallback(const char *why) {
  const char *const placed[] = {
      "", cut_why_window, cut_why_positional, cut_why_all_rows, cut_why_order, cut_why_sample};
  size_t length = strlen(why);
  for (size_t i = 0; i < sizeof placed / sizeof placed[0]; i++) {
    if (strcmp(why, placed[i]) == 0) {
      return false;
    }
  }
  return length < 2 || strcmp(why + length - 2, "()") != 0;
}

const char *cut_graver(const char *why, const char *other) {
  bool is_less = why[0] == '\0' || (!cut_is_fallback(why) && cut_is_fallback(other));
  return is_less ? other : why;
}

/* ------------------------------------------------------------ what it says */

static uint32_t modulus_of(const cutter *c, const cut_keys *keys) {
  return keys->modulus == 0 ? c->options->tasks : keys->modulus;
}

/* CAST(hash(k1, …) % n AS UINTEGER). */
static const tree_expression *partition_of(cutter *c, const cut_keys *keys) {
  const tree_expression *hash = NULL;
  tree_call *call = arena_alloc(c->a, sizeof *call);
  if (call == NULL || keys->n == 0 || c->options->hash_zero) {
    c->is_out_of_memory |= call == NULL;
    return cut_number(c, 0, &cut_uinteger);
  }
  call->name = "hash";
  hash = cut_make(c, &(tree_expression){.kind = EXPRESSION_FUNCTION,
                                        .type = &cut_ubigint,
                                        .n_children = keys->n,
                                        .children = keys->keys,
                                        .call = call});
  if (FAULT("stage.wrong_hash")) { /* another one in each stage */
    const tree_expression *salt = cut_number(c, c->n_stages, &cut_ubigint);
    hash = cut_call(c, EXPRESSION_FUNCTION, "xor", &cut_ubigint, hash, salt);
  }
  const tree_expression *n = cut_number(c, modulus_of(c, keys), &cut_ubigint);
  return cut_cast(c, cut_call(c, EXPRESSION_FUNCTION, "%", &cut_ubigint, hash, n), &cut_uinteger);
}

/* The node, or one more column behind it. */
static hf_status add_partition(cutter *c, const tree_node *node, const cut_keys *keys,
                               const tree_node **out) {
  const tree_expression **columns = NULL;
  const data_type **types = NULL;
  size_t n = node->n_columns;
  HF_TRY(cut_refs(c, node, &columns, 1));
  HF_TRY(cut_pointers(c, n + 1, &types));
  for (size_t i = 0; i < n; i++) {
    types[i] = node->types[i];
  }
  columns[n] = partition_of(c, keys);
  types[n] = &cut_uinteger;
  const tree_node **child = NULL;
  HF_TRY(cut_pointers(c, 1, &child));
  *child = node;
  return cut_make_node(c,
                       &(tree_node){.kind = TREE_PROJECTION,
                                    .n_columns = n + 1,
                                    .types = types,
                                    .n_children = 1,
                                    .children = child,
                                    .n_expressions = n + 1,
                                    .expressions = columns},
                       out);
}

/* Rows without columns cross as rows of a constant. */
static hf_status add_column(cutter *c, const tree_node *node, const tree_node **out) {
  const tree_expression **one = NULL;
  const data_type **types = NULL;
  const tree_node **child = NULL;
  HF_TRY(cut_pointers(c, 1, &one));
  HF_TRY(cut_pointers(c, 1, &types));
  HF_TRY(cut_pointers(c, 1, &child));
  *one = cut_number(c, 1, &cut_integer);
  *types = &cut_integer;
  *child = node;
  return cut_make_node(c,
                       &(tree_node){.kind = TREE_PROJECTION,
                                    .n_columns = 1,
                                    .types = types,
                                    .n_children = 1,
                                    .children = child,
                                    .n_expressions = 1,
                                    .expressions = one},
                       out);
}

static hf_status name_columns(cutter *c, const data_type *const *types, const size_t *which, size_t n,
                              schema *out) {
  column *columns = NULL;
  HF_TRY(cut_array(c, n, sizeof *columns, &columns));
  for (size_t i = 0; i < n; i++) {
    size_t at = which == NULL ? i : which[i];
    columns[i] = (column){cut_text(c, "c%zu", at), types[at]};
  }
  *out = (schema){n, columns};
  return HF_OK;
}

/* ------------------------------------------------------------------ writing */

static hf_status take_inputs(cutter *c, const plan_written *written, bool is_one, cut_stage *out) {
  cut_input *inputs = NULL;
  HF_TRY(cut_array(c, written->n_inputs, sizeof *inputs, &inputs));
  for (size_t i = 0; i < written->n_inputs; i++) {
    const plan_input *input = &written->inputs[i];
    const cut_reading *reading = &c->readings[input->node->number];
    const data_type *const *types = reading->is_stage ? input->node->types : input->node->scan->source_types;
    cut_share share = !reading->is_stage && is_one ? CUT_ALL : reading->share;
    inputs[i] = (cut_input){.share = share,
                            .is_stage = reading->is_stage,
                            .stage = reading->stage,
                            .source_id = reading->source_id,
                            .source_columns = input->columns,
                            .ordered = reading->ordered};
    HF_TRY(name_columns(c, types, input->columns, input->n_columns, &inputs[i].columns));
  }
  out->n_inputs = written->n_inputs;
  out->inputs = inputs;
  return HF_OK;
}

static hf_status take_pieces(cutter *c, const plan_written *written, size_t *n_out, const cut_piece **out) {
  cut_piece *pieces = NULL;
  HF_TRY(cut_array(c, written->n_pieces, sizeof *pieces, &pieces));
  for (size_t i = 0; i < written->n_pieces; i++) {
    pieces[i] = (cut_piece){written->pieces[i].text, written->pieces[i].input};
  }
  *n_out = written->n_pieces;
  *out = pieces;
  return HF_OK;
}

/* HF_E_UNSUPPORTED: the refusal is set. */
static hf_status write_stage(cutter *c, const tree_node *node, bool is_one, cut_stage *out) {
  const plan_write_options options = {.first_of_many = c->options->first_of_many};
  plan_written written;
  if (c->is_out_of_memory) {
    return error_set(c->error, HF_E_OUT_OF_MEMORY, "no memory to cut a plan into stages");
  }
  HF_TRY(plan_write(node, &options, c->a, &written, c->refusal, c->error));
  if (c->refusal->code != TREE_REFUSED_NONE) {
    return HF_E_UNSUPPORTED;
  }
  out->n_casts = written.n_casts;
  out->casts = written.casts;
  HF_TRY(take_pieces(c, &written, &out->n_pieces, &out->pieces));
  return take_inputs(c, &written, is_one, out);
}

/* What the partition numbers of the rows of a stage are, computed again from its output. */
static hf_status tell_partitions(cutter *c, const tree_node *node, const cut_keys *keys, cut_stage *out) {
  const tree_node rows = {.kind = TREE_INPUT, .n_columns = node->n_columns, .types = node->types};
  const tree_node *leaf = NULL, *numbered = NULL;
  const tree_expression **number = NULL;
  const plan_write_options options = {.first_of_many = c->options->first_of_many};
  plan_written written;
  for (size_t i = 0; i < keys->n; i++) {
    if (cut_is_volatile(keys->keys[i])) {
      return HF_OK;
    }
  }
  HF_TRY(cut_make_node(c, &rows, &leaf));
  HF_TRY(add_partition(c, leaf, keys, &numbered));
  tree_node *only = arena_alloc(c->a, sizeof *only);
  HF_TRY(cut_pointers(c, 1, &number));
  if (only == NULL) {
    return error_set(c->error, HF_E_OUT_OF_MEMORY, "no memory to cut a plan into stages");
  }
  *number = numbered->expressions[node->n_columns];
  *only = *numbered;
  only->n_columns = only->n_expressions = 1;
  only->types = numbered->types + node->n_columns;
  only->expressions = number;
  HF_TRY(plan_write(only, &options, c->a, &written, c->refusal, c->error));
  if (c->refusal->code != TREE_REFUSED_NONE) {
    return HF_E_UNSUPPORTED;
  }
  return take_pieces(c, &written, &out->n_partition_pieces, &out->partition_pieces);
}

static hf_status add_stage(cutter *c, const cut_stage *made, uint32_t *at) {
  if (c->n_stages == c->stages_capacity) {
    size_t capacity = 2 * c->stages_capacity + 8;
    cut_stage *stages = NULL;
    HF_TRY(cut_array(c, capacity, sizeof *stages, &stages));
    if (c->n_stages > 0) {
      memcpy(stages, c->stages, c->n_stages * sizeof *stages);
    }
    c->stages = stages;
    c->stages_capacity = capacity;
  }
  *at = (uint32_t)c->n_stages;
  c->stages[c->n_stages++] = *made;
  return HF_OK;
}

/* Nobody relies on how its sources are dealt: they are shared evenly. */
static bool split_sources(cutter *c, const tree_node *node) {
  bool is_split = node->kind == TREE_GET && cut_source_of(c, node) != NULL &&
                  c->readings[node->number].share == CUT_PARTITION;
  if (is_split) {
    c->readings[node->number].share = CUT_SPLIT;
  }
  for (size_t i = 0; i < node->n_children; i++) {
    is_split |= split_sources(c, node->children[i]);
  }
  return is_split;
}

hf_status cut_close(cutter *c, const cut_part *part, const cut_keys *keys, bool ordered, uint32_t *stage) {
  const tree_node *node = part->node;
  c->is_undealt = !part->needs_deals && split_sources(c, node);
  if (node->n_columns == 0) {
    HF_TRY(add_column(c, node, &node));
  }
  cut_stage made = {.rows = part->rows,
                    .bytes = cut_bytes(part),
                    .one_task = part->is_one,
                    .partitions = keys == NULL ? 1 : modulus_of(c, keys),
                    .ordered = ordered,
                    .filter = part->filter,
                    .filter_of = part->filter_of,
                    .what = part->what,
                    .why_one = part->is_one ? part->why : ""};
  made.falls_back = cut_is_fallback(made.why_one);
  HF_TRY(name_columns(c, node->types, NULL, node->n_columns, &made.columns));
  if (keys != NULL && c->options->tells_partitions) {
    HF_TRY(tell_partitions(c, node, keys, &made));
  }
  if (keys != NULL) {
    HF_TRY(add_partition(c, node, keys, &node));
  }
  HF_TRY(write_stage(c, node, part->is_one, &made));
  cut_take_fact(c, &made);
  if (cut_find_equal(c, &made, stage) && cut_is_repeatable(part->node)) {
    c->stages[*stage].ordered |= ordered;
    return HF_OK;
  }
  return add_stage(c, &made, stage);
}

/* ------------------------------------------------------------------ reading */

static hf_status add_reading(cutter *c, const cut_reading *reading, uint64_t *number) {
  if (c->n_readings == c->readings_capacity) {
    size_t capacity = 2 * c->readings_capacity + 8;
    cut_reading *readings = NULL;
    HF_TRY(cut_array(c, capacity, sizeof *readings, &readings));
    if (c->n_readings > 0) {
      memcpy(readings, c->readings, c->n_readings * sizeof *readings);
    }
    c->readings = readings;
    c->readings_capacity = capacity;
  }
  *number = c->n_readings;
  c->readings[c->n_readings++] = *reading;
  return HF_OK;
}

hf_status cut_read_source(cutter *c, const tree_node *get, const cut_reading *reading,
                          const tree_node **out) {
  tree_node leaf = *get;
  cut_reading of_source = *reading;
  of_source.source_id = get->scan->parameters[0].text;
  HF_TRY(add_reading(c, &of_source, &leaf.number));
  return cut_make_node(c, &leaf, out);
}

/* An ENUM crosses as text and is cast back, which no type can say that has a struct without names in it. */
static bool can_cast_back(const data_type *type) {
  bool can = type->kind != TYPE_STRUCT || (type->n_children > 0 && type->names[0][0] != '\0');
  for (size_t i = 0; can && i < type->n_children; i++) {
    can = can_cast_back(type->children[i]);
  }
  return can;
}

static hf_status check_crossing(cutter *c, const tree_node *rows) {
  for (size_t i = 0; i < rows->n_columns; i++) {
    if (data_type_contains(rows->types[i], TYPE_ENUM) && !can_cast_back(rows->types[i])) {
      *c->refusal = (tree_refusal){TREE_REFUSED_TYPE, "exchange", "an ENUM in a struct without names"};
      return HF_E_UNSUPPORTED;
    }
  }
  return HF_OK;
}

hf_status cut_read(cutter *c, uint32_t stage, cut_share share, bool ordered, const tree_node *like,
                   const tree_node **out) {
  tree_node leaf = {.kind = TREE_INPUT, .n_columns = like->n_columns, .types = like->types};
  const cut_reading reading = {.share = share,
                               .is_stage = true,
                               .ordered = ordered && !FAULT("stage.unordered_gather"),
                               .stage = stage};
  HF_TRY(check_crossing(c, like));
  c->stages[stage].ordered |= ordered;
  HF_TRY(add_reading(c, &reading, &leaf.number));
  return cut_make_node(c, &leaf, out);
}

/* The part does nothing but read a stage, which others can read whole. */
bool cut_is_bare(const cutter *c, const cut_part *part, uint32_t *stage) {
  const cut_reading *reading = part->node->kind == TREE_INPUT ? &c->readings[part->node->number] : NULL;
  if (reading == NULL || (reading->share == CUT_PARTITION && !c->stages[reading->stage].is_done)) {
    return false;
  }
  *stage = reading->stage;
  return true;
}

/* What the stage is known to give is what its reader has. */
void cut_take_rows(const cutter *c, uint32_t stage, cut_part *part) {
  if (c->stages[stage].is_done) {
    part->rows = c->stages[stage].rows;
  }
}

/* ------------------------------------------------------- gather, broadcast */

static hf_status read_all(cutter *c, cut_part *part, bool ordered) {
  uint32_t stage = 0;
  if (!cut_is_bare(c, part, &stage)) {
    HF_TRY(cut_close(c, part, NULL, ordered, &stage));
  }
  part->n_deals = 0;
  part->needs_deals = false;
  part->what = "";
  part->filter = NULL;
  cut_take_rows(c, stage, part);
  return cut_read(c, stage, CUT_ALL, ordered, part->node, &part->node);
}

hf_status cut_gather(cutter *c, cut_part *part, bool ordered, const char *why) {
  if (part->is_one) {
    part->why = cut_graver(part->why, why);
    return HF_OK;
  }
  cut_take_cheap(c, part);
  if (part->is_one) {
    part->why = why;
    return HF_OK;
  }
  HF_TRY(read_all(c, part, ordered));
  part->is_one = true;
  part->why = why;
  part->what = "gather";
  return HF_OK;
}

hf_status cut_broadcast(cutter *c, cut_part *part, bool ordered) {
  if (cut_is_constant(part->node)) { /* every task makes them itself */
    return HF_OK;
  }
  if (!ordered && cut_is_cheap(c, part)) {
    cut_read_whole(c, part->node);
    part->n_deals = 0;
    return HF_OK;
  }
  return read_all(c, part, ordered);
}

/* ----------------------------------------------------------------- exchange */

hf_status cut_set_deal(cutter *c, cut_part *part, const cut_keys *keys) {
  size_t *columns = NULL;
  HF_TRY(cut_array(c, keys->n, sizeof *columns, &columns));
  part->n_deals = 0;
  part->modulus = modulus_of(c, keys);
  for (size_t i = 0; i < keys->n; i++) {
    if (keys->keys[i]->kind != EXPRESSION_REF) {
      return HF_OK;
    }
    columns[i] = keys->keys[i]->ref;
  }
  if (keys->n > 0) {
    part->deals[part->n_deals++] = (cut_deal){keys->n, columns};
  }
  return HF_OK;
}

hf_status cut_exchange(cutter *c, cut_part *part, const cut_keys *keys, bool ordered) {
  uint32_t stage = 0;
  if (cut_is_dealt(c, part, keys)) {
    part->needs_deals = true;
    return HF_OK;
  }
  HF_TRY(cut_close(c, part, keys, ordered, &stage));
  HF_TRY(cut_read(c, stage, CUT_PARTITION, ordered, part->node, &part->node));
  cut_take_rows(c, stage, part);
  part->is_one = false;
  part->needs_deals = false;
  part->what = "";
  part->filter = NULL;
  return cut_set_deal(c, part, keys);
}

hf_status cut_exchange_all(cutter *c, cut_part *part) {
  const tree_expression **columns = NULL;
  HF_TRY(cut_refs(c, part->node, &columns, 0));
  return cut_exchange(c, part, &(cut_keys){.n = part->node->n_columns, .keys = columns}, false);
}
