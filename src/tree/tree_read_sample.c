/* SPDX-License-Identifier: Apache-2.0 */
/* SAMPLE: how many rows, or which share of them, are drawn. One that a scan makes itself is refused in tree_read_get.c. */
#include "tree/tree_internal.h"

static const char *const method_names[] = {"System", "Bernoulli", "Reservoir"};
enum { METHODS = sizeof method_names / sizeof method_names[0] };

/* sample_size is a number of rows or of percent, as the value's type says. */
static hf_status read_size(json_view *v, tree_sample *sample) {
  tree_value size;
  HF_TRY(json_read_bool(v, "is_percentage", &sample->is_percent));
  HF_TRY(tree_read_value(v->reader, json_read_take(v, "sample_size"), NULL, &size));
  bool is_number =
      !size.is_null && (sample->is_percent ? size.type->kind == TYPE_DOUBLE : size.type->kind == TYPE_BIGINT);
  if (!is_number) {
    return json_read_refuse(v->reader, TREE_REFUSED_VALUE, v->node, "a sample of an unknown size");
  }
  sample->percent = sample->is_percent ? size.number : 0;
  sample->rows = sample->is_percent ? 0 : size.lower;
  return HF_OK;
}

hf_status tree_read_sample(tree_building *b) {
  json_view v;
  unsigned method = 0;
  tree_sample *sample = arena_alloc(b->v->reader->a, sizeof *sample);
  if (sample == NULL) {
    return json_read_no_memory(b->v->reader);
  }
  HF_TRY(json_read_open(b->v->reader, json_read_take(b->v, "sample_options"), b->v->node, &v));
  HF_TRY(read_size(&v, sample));
  HF_TRY(json_read_enum(&v, "method", method_names, METHODS, &method));
  struct json_object *seed = json_read_take(&v, "seed"), *repeatable = json_read_take(&v, "repeatable");
  HF_TRY(json_read_close(&v));
  int64_t number = json_object_is_type(seed, json_type_int) ? json_object_get_int64(seed) : -1;
  sample->method = (tree_sample_method)method;
  sample->has_seed = number >= 0;
  sample->seed = number >= 0 ? (uint64_t)number : 0;
  if (json_object_get_boolean(repeatable) && !sample->has_seed) {
    return json_read_refuse(b->v->reader, TREE_REFUSED_VALUE, b->v->node, "repeatable without a seed");
  }
  if (sample->has_seed &&
      sample->method != SAMPLE_BERNOULLI) { /* it draws by chunks, which are others over blocks */
    return json_read_refuse(b->v->reader, TREE_REFUSED_VALUE, b->v->node, "a seed for a sample by %s",
                            method_names[method]);
  }
  b->node->sample = sample;
  HF_TRY(tree_set_columns(b, b->children[0].node->n_columns));
  for (size_t i = 0; i < b->children[0].node->n_columns; i++) {
    tree_pass_column(b, 0, i);
  }
  return HF_OK;
}
