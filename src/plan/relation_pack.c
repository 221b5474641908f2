/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relations → bytes. SQL text with bound names is WithRelations: the text, and
 * each name as SubqueryAlias of its relation. Files in the text stay text: the
 * reader finds them again. Decoding is in relation_unpack.c.
 */
#include "plan/wire_internal.h"

#include <string.h>
#include <strings.h>

typedef struct packer {
  arena *arena;
  size_t n_nodes;
  hf_error *error;
} packer;

static hf_status out_of_memory(const packer *p) {
  return error_set(p->error, HF_E_OUT_OF_MEMORY, "no memory to encode a relation");
}

static hf_status too_large(const packer *p) {
  error_set(p->error, HF_E_LIMIT, "a relation is too large to send: more than %d parts or %d bytes",
            WIRE_MOST_NODES, WIRE_LARGEST_BYTES);
  error_hint(p->error, "hold an intermediate result with cache() or CACHE TABLE, and build on it");
  return HF_E_LIMIT;
}

static hf_status encode(packer *p, const relation *r, Spark__Connect__Relation **out);

/* protobuf-c's structs are not const; it reads them only. */
static char *text_of(const char *text) {
  return (char *)text;
}

/* ------------------------------------------------------------------- reads */

/* A quoted constant becomes its text, as the protocol has options; other literals stay. */
static char *option_text(packer *p, const char *value_sql) {
  size_t length = strlen(value_sql);
  token t = {TOKEN_STRING, 0, length};
  bool is_quoted = length >= 2 && value_sql[0] == '\'' && value_sql[length - 1] == '\'';
  return is_quoted ? token_value(value_sql, t, p->arena) : arena_strdup(p->arena, value_sql);
}

static hf_status encode_options(packer *p, const source_request *from, Spark__Connect__Read__DataSource *to) {
  Spark__Connect__Read__Option *options = arena_array(p->arena, from->n_options + 1, sizeof *options);
  to->options = arena_array(p->arena, from->n_options + 1, sizeof(void *));
  if (options == NULL || to->options == NULL) {
    return out_of_memory(p);
  }
  for (size_t i = 0; i < from->n_options; i++) {
    spark__connect__read__option__init(&options[i]);
    options[i].key = text_of(from->options[i].name);
    options[i].value = option_text(p, from->options[i].value_sql);
    if (options[i].value == NULL) {
      return out_of_memory(p);
    }
    to->options[i] = &options[i];
  }
  to->n_options = from->n_options;
  return HF_OK;
}

static hf_status encode_read(packer *p, const source_request *from, Spark__Connect__Relation *to) {
  static const char *const formats[] = {"parquet", "csv", "json"};
  Spark__Connect__Read *read = arena_alloc(p->arena, sizeof *read);
  Spark__Connect__Read__DataSource *to_read = arena_alloc(p->arena, sizeof *to_read);
  char **paths = arena_array(p->arena, from->n_paths, sizeof *paths);
  if (read == NULL || to_read == NULL || paths == NULL) {
    return out_of_memory(p);
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

static hf_status encode_text(packer *p, const char *text, Spark__Connect__Relation *to) {
  Spark__Connect__SQL *sql = arena_alloc(p->arena, sizeof *sql);
  if (sql == NULL) {
    return out_of_memory(p);
  }
  spark__connect__sql__init(sql);
  sql->query = text_of(text);
  to->rel_type_case = SPARK__CONNECT__RELATION__REL_TYPE_SQL;
  to->sql = sql;
  return HF_OK;
}

static hf_status encode_reference(packer *p, const sql_spot *spot, Spark__Connect__Relation **out) {
  Spark__Connect__Relation *wrapper = arena_alloc(p->arena, sizeof *wrapper);
  Spark__Connect__SubqueryAlias *alias = arena_alloc(p->arena, sizeof *alias);
  if (wrapper == NULL || alias == NULL) {
    return out_of_memory(p);
  }
  spark__connect__relation__init(wrapper);
  spark__connect__subquery_alias__init(alias);
  alias->alias = text_of(spot->name);
  wrapper->rel_type_case = SPARK__CONNECT__RELATION__REL_TYPE_SUBQUERY_ALIAS;
  wrapper->subquery_alias = alias;
  *out = wrapper;
  return encode(p, spot->bound, &alias->input);
}

/* Whether an earlier spot has the same name: then it has the same relation. */
static bool is_repeated(const relation *r, size_t i) {
  for (size_t k = 0; k < i; k++) {
    if (r->view.spots[k].bound != NULL && strcasecmp(r->view.spots[k].name, r->view.spots[i].name) == 0) {
      return true;
    }
  }
  return false;
}

static hf_status encode_sql(packer *p, const relation *r, Spark__Connect__Relation *to) {
  Spark__Connect__Relation **references = arena_array(p->arena, r->view.n_spots + 1, sizeof(void *));
  size_t n = 0;
  if (references == NULL) {
    return out_of_memory(p);
  }
  for (size_t i = 0; i < r->view.n_spots; i++) {
    if (r->view.spots[i].bound != NULL && !is_repeated(r, i)) {
      HF_TRY(encode_reference(p, &r->view.spots[i], &references[n++]));
    }
  }
  if (n == 0) {
    return encode_text(p, r->view.text, to);
  }
  Spark__Connect__WithRelations *with = arena_alloc(p->arena, sizeof *with);
  Spark__Connect__Relation *root = arena_alloc(p->arena, sizeof *root);
  if (with == NULL || root == NULL) {
    return out_of_memory(p);
  }
  spark__connect__with_relations__init(with);
  spark__connect__relation__init(root);
  with->root = root;
  with->references = references;
  with->n_references = n;
  to->rel_type_case = SPARK__CONNECT__RELATION__REL_TYPE_WITH_RELATIONS;
  to->with_relations = with;
  return encode_text(p, r->view.text, root);
}

/* ------------------------------------------------------------- other kinds */

static hf_status encode_local(packer *p, const relation *r, Spark__Connect__Relation *to) {
  Spark__Connect__CachedLocalRelation *local = arena_alloc(p->arena, sizeof *local);
  if (local == NULL) {
    return out_of_memory(p);
  }
  spark__connect__cached_local_relation__init(local);
  local->hash = text_of(r->view.local_id.text);
  to->rel_type_case = SPARK__CONNECT__RELATION__REL_TYPE_CACHED_LOCAL_RELATION;
  to->cached_local_relation = local;
  return HF_OK;
}

static hf_status encode_cache(packer *p, const relation *r, Spark__Connect__Relation *to) {
  Holdfast__V1__CacheNode node = HOLDFAST__V1__CACHE_NODE__INIT;
  Spark__Connect__Any *any = arena_alloc(p->arena, sizeof *any);
  if (any == NULL) {
    return out_of_memory(p);
  }
  spark__connect__any__init(any);
  node.cache_id = text_of(r->view.cache_id.text);
  node.session_id = text_of(r->view.session.text);
  node.level = text_of(r->view.level);
  HF_TRY(encode(p, r->view.input, &node.input));
  size_t length = holdfast__v1__cache_node__get_packed_size(&node);
  if (length > WIRE_LARGEST_BYTES) {
    return too_large(p);
  }
  uint8_t *bytes = arena_alloc(p->arena, length);
  if (bytes == NULL) {
    return out_of_memory(p);
  }
  holdfast__v1__cache_node__pack(&node, bytes);
  any->type_url = text_of(WIRE_CACHE_NODE_URL);
  any->has_value = 1;
  any->value = (ProtobufCBinaryData){.len = length, .data = bytes};
  to->rel_type_case = SPARK__CONNECT__RELATION__REL_TYPE_EXTENSION;
  to->extension = any;
  return HF_OK;
}

static hf_status encode(packer *p, const relation *r, Spark__Connect__Relation **out) {
  static hf_status (*const kinds[])(packer *, const relation *, Spark__Connect__Relation *) = {
      [RELATION_SQL] = encode_sql, [RELATION_LOCAL] = encode_local, [RELATION_CACHE] = encode_cache};
  if (++p->n_nodes > WIRE_MOST_NODES) {
    return too_large(p);
  }
  if (r->view.kind == RELATION_BUILT) {
    return error_set(p->error, HF_E_UNSUPPORTED, "a relation built step by step cannot be sent yet");
  }
  Spark__Connect__Relation *to = arena_alloc(p->arena, sizeof *to);
  if (to == NULL) {
    return out_of_memory(p);
  }
  spark__connect__relation__init(to);
  *out = to;
  return r->view.kind == RELATION_READ ? encode_read(p, r->view.source, to) : kinds[r->view.kind](p, r, to);
}

hf_status relation_pack(const relation *r, buf *out, hf_error *error) {
  packer p = {.arena = arena_new(), .error = error};
  Spark__Connect__Relation *message = NULL;
  if (p.arena == NULL) {
    return out_of_memory(&p);
  }
  hf_status status = encode(&p, r, &message);
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
    status = out_of_memory(&p);
  }
  arena_free(p.arena);
  return status;
}
