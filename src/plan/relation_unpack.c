/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes → relations: checked (wire_check.c), unpacked by protobuf-c, then made
 * anew: SQL text is parsed again, its names bound to the relations that came
 * with it, then to the session's. Nothing of a peer is taken as a path or id
 * without the checks that a user's own text gets.
 */
#include "plan/wire_internal.h"

#include <string.h>
#include <strings.h>

/* Names that came with a text, over those of whoever asked. */
typedef struct carried_names {
  const char *const *aliases;
  relation *const *relations;
  size_t count;
  const relation_names *outer;
} carried_names;

typedef struct unpacker {
  engine *planner;
  const relation_names *names;
  arena *arena;
  unsigned level; /* relations around the one that is decoded */
  size_t bytes;   /* unpacked so far: a cache node's input is unpacked again */
  hf_error *error;
} unpacker;

enum { MOST_UNPACKED_BYTES = 256 << 20 };

static hf_status out_of_memory(unpacker *u) {
  return error_set(u->error, HF_E_OUT_OF_MEMORY, "no memory to decode a relation");
}

static hf_status malformed(unpacker *u, const char *what) {
  return error_set(u->error, HF_E_PROTOCOL, "a relation cannot be decoded: %s", what);
}

static hf_status decode(unpacker *u, const Spark__Connect__Relation *from, relation **out);

/* ------------------------------------------------------------------- reads */

static bool format_of(const char *name, source_format *out) {
  static const char *const names[] = {"parquet", "csv", "json"};
  for (size_t i = 0; name != NULL && i < sizeof names / sizeof names[0]; i++) {
    if (strcasecmp(names[i], name) == 0) {
      *out = (source_format)i;
      return true;
    }
  }
  return false;
}

static hf_status decode_read(unpacker *u, const Spark__Connect__Read *from, relation **out) {
  const Spark__Connect__Read__DataSource *given = from->data_source;
  source_request request = {0};
  if (from->read_type_case != SPARK__CONNECT__READ__READ_TYPE_DATA_SOURCE ||
      !format_of(given->format, &request.format) || (from->has_is_streaming && from->is_streaming) ||
      given->schema != NULL) {
    return error_set(u->error, HF_E_UNSUPPORTED, "this kind of read is not there: %s",
                     from->read_type_case == SPARK__CONNECT__READ__READ_TYPE_DATA_SOURCE &&
                             given->format != NULL
                         ? given->format
                         : "no format");
  }
  source_option *options = arena_array(u->arena, given->n_options + 1, sizeof *options);
  if (options == NULL) {
    return out_of_memory(u);
  }
  for (size_t i = 0; i < given->n_options; i++) {
    const Spark__Connect__Read__Option *option = given->options[i];
    if (option->key == NULL || option->value == NULL) {
      return malformed(u, "a reader option without name or value");
    }
    options[i].name = option->key;
    HF_TRY(source_option_from_text(request.format, option->key, option->value, u->arena,
                                   &options[i].value_sql, u->error));
  }
  request.paths = (const char *const *)given->paths;
  request.n_paths = given->n_paths;
  request.options = options;
  request.n_options = given->n_options;
  return relation_from_read(&request, out, u->error);
}

/* --------------------------------------------------------------------- SQL */

static const relation *carried_lookup(void *context, const char *name) {
  const carried_names *names = context;
  for (size_t i = 0; i < names->count; i++) {
    if (strcasecmp(names->aliases[i], name) == 0) {
      return names->relations[i];
    }
  }
  return names->outer->lookup(names->outer->context, name);
}

static const char *carried_name_at(void *context, size_t i) {
  const carried_names *names = context;
  if (i < names->count) {
    return names->aliases[i];
  }
  return names->outer->name_at == NULL ? NULL
                                       : names->outer->name_at(names->outer->context, i - names->count);
}

static hf_status decode_reference(unpacker *u, const Spark__Connect__Relation *from, const char **alias,
                                  relation **out) {
  if (from->rel_type_case != SPARK__CONNECT__RELATION__REL_TYPE_SUBQUERY_ALIAS ||
      from->subquery_alias->alias == NULL || from->subquery_alias->input == NULL) {
    return malformed(u, "a reference without a name");
  }
  *alias = from->subquery_alias->alias;
  return decode(u, from->subquery_alias->input, out);
}

static hf_status decode_text(unpacker *u, const Spark__Connect__SQL *from, const relation_names *names,
                             relation **out) {
  if (from == NULL || from->query == NULL) {
    return malformed(u, "SQL without text");
  }
  return relation_from_sql(u->planner, from->query, names, out, u->error);
}

static hf_status decode_with(unpacker *u, const Spark__Connect__WithRelations *from, relation **out) {
  size_t n = 0;
  const char **aliases = arena_array(u->arena, from->n_references + 1, sizeof *aliases);
  relation **relations = arena_array(u->arena, from->n_references + 1, sizeof(void *));
  hf_status status = HF_OK;
  if (aliases == NULL || relations == NULL) {
    return out_of_memory(u);
  }
  if (from->root == NULL || from->root->rel_type_case != SPARK__CONNECT__RELATION__REL_TYPE_SQL) {
    return malformed(u, "references without SQL text");
  }
  while (status == HF_OK && n < from->n_references) {
    status = decode_reference(u, from->references[n], &aliases[n], &relations[n]);
    n += status == HF_OK;
  }
  if (status == HF_OK) {
    carried_names carried = {aliases, relations, n, u->names};
    relation_names names = {carried_lookup, carried_name_at, &carried, NULL};
    status = decode_text(u, from->root->sql, &names, out);
  }
  for (size_t i = 0; i < n; i++) {
    relation_release(relations[i]);
  }
  return status;
}

/* ------------------------------------------------------------- other kinds */

static hf_status decode_local(unpacker *u, const Spark__Connect__CachedLocalRelation *from, relation **out) {
  uuid id;
  if (from->hash == NULL || !uuid_parse(from->hash, &id)) {
    return malformed(u, "client data without an id");
  }
  const relation *known = u->names->local == NULL ? NULL : u->names->local(u->names->context, &id);
  if (known == NULL) {
    return error_set(u->error, HF_E_PROTOCOL, "the session holds no client data of this id: %s", id.text);
  }
  *out = relation_retain(known);
  return HF_OK;
}

static hf_status decode_cache(unpacker *u, const Holdfast__V1__CacheNode *from, relation **out) {
  uuid cache_id, session;
  relation *input = NULL;
  if (from->cache_id == NULL || !uuid_parse(from->cache_id, &cache_id) || from->session_id == NULL ||
      !uuid_parse(from->session_id, &session) || from->input == NULL || from->level == NULL) {
    return malformed(u, "an incomplete cache node");
  }
  HF_TRY(decode(u, from->input, &input));
  hf_status status = relation_from_cache(&cache_id, &session, input, from->level, out, u->error);
  relation_release(input);
  return status;
}

static hf_status decode_extension(unpacker *u, const Spark__Connect__Any *from, relation **out) {
  if (from->type_url == NULL || strcmp(from->type_url, WIRE_CACHE_NODE_URL) != 0) {
    return error_set(u->error, HF_E_UNSUPPORTED, "no relation has this extension: %.100s",
                     from->type_url == NULL ? "" : from->type_url);
  }
  u->bytes += from->value.len;
  if (u->bytes > MOST_UNPACKED_BYTES) {
    return error_set(u->error, HF_E_LIMIT, "cache nodes in a relation hold more than %d bytes",
                     MOST_UNPACKED_BYTES);
  }
  HF_TRY(wire_check(&holdfast__v1__cache_node__descriptor, from->value.data, from->value.len, u->error));
  Holdfast__V1__CacheNode *node = holdfast__v1__cache_node__unpack(NULL, from->value.len, from->value.data);
  if (node == NULL) {
    return malformed(u, "a damaged cache node");
  }
  hf_status status = decode_cache(u, node, out);
  holdfast__v1__cache_node__free_unpacked(node, NULL);
  return status;
}

static hf_status decode_kind(unpacker *u, const Spark__Connect__Relation *from, relation **out) {
  switch (from->rel_type_case) {
    case SPARK__CONNECT__RELATION__REL_TYPE_READ:
      return decode_read(u, from->read, out);
    case SPARK__CONNECT__RELATION__REL_TYPE_SQL:
      return decode_text(u, from->sql, u->names, out);
    case SPARK__CONNECT__RELATION__REL_TYPE_WITH_RELATIONS:
      return decode_with(u, from->with_relations, out);
    case SPARK__CONNECT__RELATION__REL_TYPE_CACHED_LOCAL_RELATION:
      return decode_local(u, from->cached_local_relation, out);
    case SPARK__CONNECT__RELATION__REL_TYPE_EXTENSION:
      return decode_extension(u, from->extension, out);
    default:
      return malformed(u, "a relation of no kind");
  }
}

static hf_status decode(unpacker *u, const Spark__Connect__Relation *from, relation **out) {
  if (u->level == RELATION_DEEPEST) {
    return error_set(u->error, HF_E_LIMIT, "relations are nested deeper than %d", RELATION_DEEPEST);
  }
  u->level++;
  hf_status status = decode_kind(u, from, out);
  u->level--;
  return status;
}

hf_status relation_unpack(const void *bytes, size_t length, engine *planner, const relation_names *names,
                          relation **out, hf_error *error) {
  unpacker u = {.planner = planner, .names = names, .error = error};
  HF_TRY(wire_check(&spark__connect__relation__descriptor, bytes, length, error));
  u.arena = arena_new();
  Spark__Connect__Relation *message =
      u.arena == NULL ? NULL : spark__connect__relation__unpack(NULL, length, bytes);
  if (message == NULL) {
    hf_status failed = u.arena == NULL ? out_of_memory(&u) : malformed(&u, "damaged bytes");
    arena_free(u.arena);
    return failed;
  }
  hf_status status = decode(&u, message, out);
  spark__connect__relation__free_unpacked(message, NULL);
  arena_free(u.arena);
  return status;
}
