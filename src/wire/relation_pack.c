/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relations → bytes. SQL text with bound names is WithRelations: the text, and
 * each name as SubqueryAlias of its relation. Files in the text stay text: the
 * reader finds them again. Decoding is in relation_unpack.c.
 */
#include "wire/wire_internal.h"

#include <string.h>
#include <strings.h>

hf_status wire_pack_no_memory(const wire_packer *p) {
  return error_set(p->error, HF_E_OUT_OF_MEMORY, "no memory to encode a relation");
}

static hf_status too_large(const wire_packer *p) {
  error_set(p->error, HF_E_LIMIT, "a relation is too large to send: more than %d parts or %d bytes",
            WIRE_MOST_NODES, WIRE_LARGEST_BYTES);
  error_hint(p->error, "hold an intermediate result with cache() or CACHE TABLE, and build on it");
  return HF_E_LIMIT;
}

static hf_status encode(wire_packer *p, const relation *r, Spark__Connect__Relation **out);
static hf_status encode_top(wire_packer *p, const relation *r, Spark__Connect__Relation **out);

/* protobuf-c's structs are not const; it reads them only. */
static char *text_of(const char *text) {
  return (char *)text;
}

/* ------------------------------------------------------------------- reads */

/* A quoted constant becomes its text, as the protocol has options; other literals stay. */
static char *option_text(wire_packer *p, const char *value_sql) {
  size_t length = strlen(value_sql);
  token t = {TOKEN_STRING, 0, length};
  bool is_quoted = length >= 2 && value_sql[0] == '\'' && value_sql[length - 1] == '\'';
  return is_quoted ? token_value(value_sql, t, p->arena) : arena_strdup(p->arena, value_sql);
}

static hf_status encode_options(wire_packer *p, const source_request *from,
                                Spark__Connect__Read__DataSource *to) {
  Spark__Connect__Read__Option *options = arena_array(p->arena, from->n_options + 1, sizeof *options);
  to->options = arena_array(p->arena, from->n_options + 1, sizeof(void *));
  if (options == NULL || to->options == NULL) {
    return wire_pack_no_memory(p);
  }
  for (size_t i = 0; i < from->n_options; i++) {
    spark__connect__read__option__init(&options[i]);
    options[i].key = text_of(from->options[i].name);
    options[i].value = option_text(p, from->options[i].value_sql);
    if (options[i].value == NULL) {
      return wire_pack_no_memory(p);
    }
    to->options[i] = &options[i];
  }
  to->n_options = from->n_options;
  return HF_OK;
}

static hf_status encode_read(wire_packer *p, const source_request *from, Spark__Connect__Relation *to) {
  static const char *const formats[] = {"parquet", "csv", "json"};
  Spark__Connect__Read *read = arena_alloc(p->arena, sizeof *read);
  Spark__Connect__Read__DataSource *to_read = arena_alloc(p->arena, sizeof *to_read);
  char **paths = arena_array(p->arena, from->n_paths, sizeof *paths);
  if (read == NULL || to_read == NULL || paths == NULL) {
    return wire_pack_no_memory(p);
  }
  spark__connect__read__init(read);
  spark__connect__read__data_source__init(to_read);
  for (size_t i = 0; i < from->n_paths; i++) {
    paths[i] = text_of(from->paths[i]);
  }
  to_read->format = text_of(formats[from->format]);
  to_read->paths = paths;
  to_read->n_paths = from->n_paths;
  read->read_type_case = SPARK__CONNECT__READ__READ_TYPE_DATA_SOURCE;
  read->data_source = to_read;
  to->rel_type_case = SPARK__CONNECT__RELATION__REL_TYPE_READ;
  to->read = read;
  return encode_options(p, from, to_read);
}

/* --------------------------------------------------------------------- SQL */

static hf_status encode_text(wire_packer *p, const char *text, Spark__Connect__Relation *to) {
  Spark__Connect__SQL *sql = arena_alloc(p->arena, sizeof *sql);
  if (sql == NULL) {
    return wire_pack_no_memory(p);
  }
  spark__connect__sql__init(sql);
  sql->query = text_of(text);
  to->rel_type_case = SPARK__CONNECT__RELATION__REL_TYPE_SQL;
  to->sql = sql;
  return HF_OK;
}

static hf_status encode_reference(wire_packer *p, const sql_spot *spot, Spark__Connect__Relation **out) {
  Spark__Connect__Relation *wrapper = arena_alloc(p->arena, sizeof *wrapper);
  Spark__Connect__SubqueryAlias *alias = arena_alloc(p->arena, sizeof *alias);
  if (wrapper == NULL || alias == NULL) {
    return wire_pack_no_memory(p);
  }
  spark__connect__relation__init(wrapper);
  spark__connect__subquery_alias__init(alias);
  alias->alias = text_of(spot->name);
  wrapper->rel_type_case = SPARK__CONNECT__RELATION__REL_TYPE_SUBQUERY_ALIAS;
  wrapper->subquery_alias = alias;
  *out = wrapper;
  return encode_top(p, spot->bound, &alias->input);
}

/* Names that a text uses, once each: an equal name is the same relation. */
typedef struct reference_list {
  Spark__Connect__Relation **items;
  const char **names;
  size_t n, capacity;
} reference_list;

static bool is_listed(const reference_list *list, const char *name) {
  for (size_t i = 0; i < list->n; i++) {
    if (strcasecmp(list->names[i], name) == 0) {
      return true;
    }
  }
  return false;
}

static hf_status add_references(wire_packer *p, const sql_spot *spots, size_t n, reference_list *list) {
  if (list->n + n > list->capacity) {
    size_t capacity = list->n + n;
    Spark__Connect__Relation **items = arena_array(p->arena, capacity, sizeof(void *));
    const char **names = arena_array(p->arena, capacity, sizeof(char *));
    if (items == NULL || names == NULL) {
      return wire_pack_no_memory(p);
    }
    for (size_t i = 0; i < list->n; i++) {
      items[i] = list->items[i];
      names[i] = list->names[i];
    }
    *list = (reference_list){items, names, list->n, capacity};
  }
  for (size_t i = 0; i < n; i++) {
    if (spots[i].bound != NULL && !is_listed(list, spots[i].name)) {
      list->names[list->n] = spots[i].name;
      HF_TRY(encode_reference(p, &spots[i], &list->items[list->n++]));
    }
  }
  return HF_OK;
}

/* A relation whose text uses names goes as the root of WithRelations. *root is where it is to be put. */
static hf_status encode_references(wire_packer *p, const reference_list *list, Spark__Connect__Relation *to,
                                   Spark__Connect__Relation **root) {
  *root = to;
  if (list->n == 0) {
    return HF_OK;
  }
  Spark__Connect__WithRelations *with = arena_alloc(p->arena, sizeof *with);
  *root = arena_alloc(p->arena, sizeof **root);
  if (with == NULL || *root == NULL) {
    return wire_pack_no_memory(p);
  }
  spark__connect__with_relations__init(with);
  spark__connect__relation__init(*root);
  with->root = *root;
  with->references = list->items;
  with->n_references = list->n;
  to->rel_type_case = SPARK__CONNECT__RELATION__REL_TYPE_WITH_RELATIONS;
  to->with_relations = with;
  return HF_OK;
}

static hf_status encode_sql(wire_packer *p, const relation *r, Spark__Connect__Relation *to) {
  reference_list list = {0};
  Spark__Connect__Relation *root = NULL;
  HF_TRY(add_references(p, r->view.spots, r->view.n_spots, &list));
  HF_TRY(encode_references(p, &list, to, &root));
  char *text = NULL;
  wire_part part = {r->view.text, 0, strlen(r->view.text), r->view.spots, r->view.n_spots};
  HF_TRY(wire_text(p, &part, &text));
  return encode_text(p, text, root);
}

/* ------------------------------------------------------------------- steps */

static hf_status encode_built(wire_packer *p, const relation *r, Spark__Connect__Relation *to) {
  const relation_step *step = r->view.step;
  reference_list list = {0};
  Spark__Connect__Relation *root = NULL;
  for (size_t i = 0; i < step->n_expressions; i++) {
    HF_TRY(add_references(p, step->expressions[i].spots, step->expressions[i].n_spots, &list));
  }
  for (size_t i = 0; i < step->n_groups; i++) {
    HF_TRY(add_references(p, step->groups[i].spots, step->groups[i].n_spots, &list));
  }
  HF_TRY(encode_references(p, &list, to, &root));
  return wire_encode_step(p, r, root);
}

static hf_status put_described(wire_packer *p, const Holdfast__V1__Described *described,
                               Spark__Connect__Relation *to) {
  Spark__Connect__Any *any = arena_alloc(p->arena, sizeof *any);
  size_t length = holdfast__v1__described__get_packed_size(described);
  uint8_t *bytes = length > WIRE_LARGEST_BYTES ? NULL : arena_alloc(p->arena, length);
  if (length > WIRE_LARGEST_BYTES) {
    return too_large(p);
  }
  if (any == NULL || bytes == NULL) {
    return wire_pack_no_memory(p);
  }
  spark__connect__any__init(any);
  holdfast__v1__described__pack(described, bytes);
  any->type_url = text_of(WIRE_DESCRIBED_URL);
  any->has_value = 1;
  any->value = (ProtobufCBinaryData){.len = length, .data = bytes};
  to->rel_type_case = SPARK__CONNECT__RELATION__REL_TYPE_EXTENSION;
  to->extension = any;
  return HF_OK;
}

static hf_status encode_described(wire_packer *p, const relation *r, const schema *columns,
                                  Spark__Connect__Relation *to) {
  Holdfast__V1__Described described = HOLDFAST__V1__DESCRIBED__INIT;
  described.names = arena_array(p->arena, columns->n_columns + 1, sizeof(char *));
  described.types = arena_array(p->arena, columns->n_columns + 1, sizeof(char *));
  described.n_names = described.n_types = columns->n_columns;
  if (described.names == NULL || described.types == NULL) {
    return wire_pack_no_memory(p);
  }
  for (size_t i = 0; i < columns->n_columns; i++) {
    buf type = {0};
    data_type_to_sql(columns->columns[i].type, &type);
    described.names[i] = text_of(columns->columns[i].name);
    described.types[i] = type.failed ? NULL : arena_strdup(p->arena, buf_cstr(&type));
    buf_reset(&type);
    if (described.types[i] == NULL) {
      return wire_pack_no_memory(p);
    }
  }
  HF_TRY(encode(p, r, &described.input));
  return put_described(p, &described, to);
}

hf_status wire_encode_below(wire_packer *p, const relation *r, const step_side *side,
                            Spark__Connect__Relation **out) {
  if (r->view.kind == RELATION_BUILT && !r->view.step->is_deferred) {
    return encode(p, r, out);
  }
  *out = arena_alloc(p->arena, sizeof **out);
  if (*out == NULL) {
    return wire_pack_no_memory(p);
  }
  spark__connect__relation__init(*out);
  return encode_described(p, r, side->columns, *out);
}

/* ------------------------------------------------------------- other kinds */

static hf_status encode_local(wire_packer *p, const relation *r, Spark__Connect__Relation *to) {
  Spark__Connect__CachedLocalRelation *local = arena_alloc(p->arena, sizeof *local);
  if (local == NULL) {
    return wire_pack_no_memory(p);
  }
  spark__connect__cached_local_relation__init(local);
  local->hash = text_of(r->view.local_id.text);
  to->rel_type_case = SPARK__CONNECT__RELATION__REL_TYPE_CACHED_LOCAL_RELATION;
  to->cached_local_relation = local;
  return HF_OK;
}

static hf_status encode_cache(wire_packer *p, const relation *r, Spark__Connect__Relation *to) {
  Holdfast__V1__CacheNode node = HOLDFAST__V1__CACHE_NODE__INIT;
  Spark__Connect__Any *any = arena_alloc(p->arena, sizeof *any);
  if (any == NULL) {
    return wire_pack_no_memory(p);
  }
  spark__connect__any__init(any);
  node.cache_id = text_of(r->view.cache_id.text);
  node.session_id = text_of(r->view.session.text);
  node.level = text_of(r->view.level);
  HF_TRY(encode_top(p, r->view.input, &node.input));
  size_t length = holdfast__v1__cache_node__get_packed_size(&node);
  if (length > WIRE_LARGEST_BYTES) {
    return too_large(p);
  }
  uint8_t *bytes = arena_alloc(p->arena, length);
  if (bytes == NULL) {
    return wire_pack_no_memory(p);
  }
  holdfast__v1__cache_node__pack(&node, bytes);
  any->type_url = text_of(WIRE_CACHE_NODE_URL);
  any->has_value = 1;
  any->value = (ProtobufCBinaryData){.len = length, .data = bytes};
  to->rel_type_case = SPARK__CONNECT__RELATION__REL_TYPE_EXTENSION;
  to->extension = any;
  return HF_OK;
}

static hf_status encode(wire_packer *p, const relation *r, Spark__Connect__Relation **out) {
  static hf_status (*const kinds[])(wire_packer *, const relation *,
                                    Spark__Connect__Relation *) = {[RELATION_SQL] = encode_sql,
                                                                   [RELATION_LOCAL] = encode_local,
                                                                   [RELATION_CACHE] = encode_cache,
                                                                   [RELATION_BUILT] = encode_built};
  if (++p->n_nodes > WIRE_MOST_NODES) {
    return too_large(p);
  }
  Spark__Connect__Relation *to = arena_alloc(p->arena, sizeof *to);
  if (to == NULL) {
    return wire_pack_no_memory(p);
  }
  spark__connect__relation__init(to);
  *out = to;
  return r->view.kind == RELATION_READ ? encode_read(p, r->view.source, to) : kinds[r->view.kind](p, r, to);
}

/* A step at the top whose text names relations goes with its columns. */
static hf_status encode_top(wire_packer *p, const relation *r, Spark__Connect__Relation **out) {
  bool is_deferred = r->view.kind == RELATION_BUILT && r->view.step->is_deferred;
  return is_deferred ? wire_encode_below(p, r, &r->view.step->out, out) : encode(p, r, out);
}

hf_status relation_pack(const relation *r, buf *out, hf_error *error) {
  wire_packer p = {.arena = arena_new(), .error = error};
  Spark__Connect__Relation *message = NULL;
  if (p.arena == NULL) {
    return wire_pack_no_memory(&p);
  }
  hf_status status = encode_top(&p, r, &message);
  size_t length = status == HF_OK ? spark__connect__relation__get_packed_size(message) : 0;
  if (length > WIRE_LARGEST_BYTES) {
    status = too_large(&p);
  }
  char *room = status == HF_OK ? buf_reserve(out, length) : NULL;
  if (room != NULL) {
    spark__connect__relation__pack(message, (uint8_t *)room);
    out->length += length;
    out->data[out->length] = '\0';
  } else if (status == HF_OK) {
    status = wire_pack_no_memory(&p);
  }
  arena_free(p.arena);
  return status;
}
