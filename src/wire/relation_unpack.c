/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes → relations: checked (wire_check.c), unpacked by protobuf-c, then made
 * anew: SQL text is parsed again, its names bound to the relations that came
 * with it, then to the session's. Nothing of a peer is taken as a path or id
 * without the checks that a user's own text gets.
 */
#include "wire/wire_internal.h"

#include <string.h>
#include <strings.h>

/* Names that came with a text, over those of whoever asked. */
typedef struct carried_names {
  const char *const *aliases;
  relation *const *relations;
  size_t count;
  const relation_names *outer;
} carried_names;

enum { MOST_UNPACKED_BYTES = 256 << 20 };

hf_status wire_unpack_no_memory(const wire_unpacker *u) {
  return error_set(u->error, HF_E_OUT_OF_MEMORY, "no memory to decode a relation");
}

hf_status wire_malformed(const wire_unpacker *u, const char *what) {
  return error_set(u->error, HF_E_PROTOCOL, "a relation cannot be decoded: %s", what);
}

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

static hf_status decode_read(wire_unpacker *u, const Spark__Connect__Read *from, relation **out) {
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
    return wire_unpack_no_memory(u);
  }
  for (size_t i = 0; i < given->n_options; i++) {
    const Spark__Connect__Read__Option *option = given->options[i];
    if (option->key == NULL || option->value == NULL) {
      return wire_malformed(u, "a reader option without name or value");
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

static const relation *carried_local(void *context, const uuid *id) {
  const carried_names *names = context;
  return names->outer->local == NULL ? NULL : names->outer->local(names->outer->context, id);
}

static hf_status carried_describe(void *context, const relation *r, arena *a, schema *out, hf_error *error) {
  const carried_names *names = context;
  if (names->outer->describe == NULL) {
    return error_set(error, HF_E_UNSUPPORTED, "a step is built on what comes without its columns");
  }
  return names->outer->describe(names->outer->context, r, a, out, error);
}

static hf_status decode_reference(wire_unpacker *u, const Spark__Connect__Relation *from, const char **alias,
                                  relation **out) {
  if (from->rel_type_case != SPARK__CONNECT__RELATION__REL_TYPE_SUBQUERY_ALIAS ||
      from->subquery_alias->alias == NULL || from->subquery_alias->input == NULL) {
    return wire_malformed(u, "a reference without a name");
  }
  *alias = from->subquery_alias->alias;
  return wire_decode(u, from->subquery_alias->input, out);
}

static hf_status decode_text(wire_unpacker *u, const Spark__Connect__SQL *from, const relation_names *names,
                             relation **out) {
  if (from == NULL || from->query == NULL) {
    return wire_malformed(u, "SQL without text");
  }
  return relation_from_sql(u->planner, from->query, names, out, u->error);
}

static hf_status decode_with(wire_unpacker *u, const Spark__Connect__WithRelations *from, relation **out) {
  size_t n = 0;
  const char **aliases = arena_array(u->arena, from->n_references + 1, sizeof *aliases);
  relation **relations = arena_array(u->arena, from->n_references + 1, sizeof(void *));
  hf_status status = HF_OK;
  if (aliases == NULL || relations == NULL) {
    return wire_unpack_no_memory(u);
  }
  if (from->root == NULL) {
    return wire_malformed(u, "references without a relation");
  }
  while (status == HF_OK && n < from->n_references) {
    status = decode_reference(u, from->references[n], &aliases[n], &relations[n]);
    n += status == HF_OK;
  }
  if (status == HF_OK) {
    carried_names carried = {aliases, relations, n, u->names};
    relation_names names = {.lookup = carried_lookup,
                            .name_at = carried_name_at,
                            .context = &carried,
                            .local = carried_local,
                            .describe = carried_describe};
    const relation_names *outer = u->names;
    u->names = &names;
    status = wire_decode(u, from->root, out);
    u->names = outer;
  }
  for (size_t i = 0; i < n; i++) {
    relation_release(relations[i]);
  }
  return status;
}

/* ------------------------------------------------------------- other kinds */

static hf_status decode_local(wire_unpacker *u, const Spark__Connect__CachedLocalRelation *from,
                              relation **out) {
  uuid id;
  if (from->hash == NULL || !uuid_parse(from->hash, &id)) {
    return wire_malformed(u, "client data without an id");
  }
  const relation *known = u->names->local == NULL ? NULL : u->names->local(u->names->context, &id);
  if (known == NULL) {
    return error_set(u->error, HF_E_PROTOCOL, "the session holds no client data of this id: %s", id.text);
  }
  *out = relation_retain(known);
  return HF_OK;
}

static hf_status decode_cache(wire_unpacker *u, const Holdfast__V1__CacheNode *from, relation **out) {
  uuid cache_id, session;
  relation *input = NULL;
  if (from->cache_id == NULL || !uuid_parse(from->cache_id, &cache_id) || from->session_id == NULL ||
      !uuid_parse(from->session_id, &session) || from->input == NULL || from->level == NULL) {
    return wire_malformed(u, "an incomplete cache node");
  }
  HF_TRY(wire_decode(u, from->input, &input));
  hf_status status = relation_from_cache(&cache_id, &session, input, from->level, out, u->error);
  relation_release(input);
  return status;
}

static hf_status decode_cache_bytes(wire_unpacker *u, const ProtobufCBinaryData *bytes, relation **out) {
  HF_TRY(wire_check(&holdfast__v1__cache_node__descriptor, bytes->data, bytes->len, u->error));
  Holdfast__V1__CacheNode *node = holdfast__v1__cache_node__unpack(NULL, bytes->len, bytes->data);
  if (node == NULL) {
    return wire_malformed(u, "a damaged cache node");
  }
  hf_status status = decode_cache(u, node, out);
  holdfast__v1__cache_node__free_unpacked(node, NULL);
  return status;
}

/* A type of a peer is text that is parsed alone, as a part of one expression. */
static hf_status check_type(const wire_unpacker *u, const char *type) {
  const char *cast = arena_printf(u->arena, "CAST(NULL AS %s)", type);
  return cast == NULL ? wire_unpack_no_memory(u)
                      : relation_check_expression(u->planner, cast, u->names, u->error);
}

/* SELECT CAST(NULL AS <type>) AS <name> …: DuckDB reads the types; nothing is computed. */
static hf_status read_columns(wire_unpacker *u, const Holdfast__V1__Described *from, schema *out) {
  buf sql = {0};
  schema found;
  for (size_t i = 0; i < from->n_types; i++) {
    HF_TRY(check_type(u, from->types[i]));
  }
  for (size_t i = 0; i < from->n_types; i++) {
    buf_printf(&sql, "%s CAST(NULL AS %s) AS c%zu", i == 0 ? "SELECT" : ",", from->types[i], i);
  }
  hf_status status = sql.failed ? wire_unpack_no_memory(u)
                                : engine_describe(u->planner, buf_cstr(&sql), u->arena, &found, u->error);
  buf_reset(&sql);
  HF_TRY(status);
  if (found.n_columns != from->n_names) {
    return wire_malformed(u, "columns of other types than there are");
  }
  column *columns = arena_array(u->arena, from->n_names, sizeof *columns);
  for (size_t i = 0; columns != NULL && i < from->n_names; i++) {
    columns[i] = (column){arena_strdup(u->arena, from->names[i]), found.columns[i].type};
    columns = columns[i].name == NULL ? NULL : columns;
  }
  *out = (schema){from->n_names, columns};
  return columns == NULL ? wire_unpack_no_memory(u) : HF_OK;
}

static hf_status decode_described(wire_unpacker *u, const Holdfast__V1__Described *from, relation **out) {
  schema columns;
  relation *r = NULL;
  if (from->input == NULL || from->n_names == 0 || from->n_names != from->n_types) {
    return wire_malformed(u, "columns without a relation");
  }
  HF_TRY(read_columns(u, from, &columns));
  HF_TRY(wire_decode(u, from->input, &r));
  hf_status status = relation_is_checked(r) ? HF_OK : relation_settle(r, &columns, u->error);
  if (status == HF_OK && relation_columns(r) == NULL) {
    status = relation_remember_columns(r, &columns, u->error);
  }
  if (status != HF_OK) {
    relation_release(r);
    return status;
  }
  *out = r;
  return HF_OK;
}

static hf_status decode_described_bytes(wire_unpacker *u, const ProtobufCBinaryData *bytes, relation **out) {
  HF_TRY(wire_check(&holdfast__v1__described__descriptor, bytes->data, bytes->len, u->error));
  Holdfast__V1__Described *described = holdfast__v1__described__unpack(NULL, bytes->len, bytes->data);
  if (described == NULL) {
    return wire_malformed(u, "a damaged description");
  }
  hf_status status = decode_described(u, described, out);
  holdfast__v1__described__free_unpacked(described, NULL);
  return status;
}

static hf_status decode_extension(wire_unpacker *u, const Spark__Connect__Any *from, relation **out) {
  const char *url = from->type_url == NULL ? "" : from->type_url;
  u->bytes += from->value.len;
  if (u->bytes > MOST_UNPACKED_BYTES) {
    return error_set(u->error, HF_E_LIMIT, "extensions in a relation hold more than %d bytes",
                     MOST_UNPACKED_BYTES);
  }
  if (strcmp(url, WIRE_CACHE_NODE_URL) == 0) {
    return decode_cache_bytes(u, &from->value, out);
  }
  if (strcmp(url, WIRE_DESCRIBED_URL) == 0) {
    return decode_described_bytes(u, &from->value, out);
  }
  return error_set(u->error, HF_E_UNSUPPORTED, "no relation has this extension: %.100s", url);
}

static hf_status decode_kind(wire_unpacker *u, const Spark__Connect__Relation *from, relation **out) {
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
    case SPARK__CONNECT__RELATION__REL_TYPE__NOT_SET:
      return wire_malformed(u, "a relation of no kind");
    default:
      return wire_decode_step(u, from, out);
  }
}

hf_status wire_decode(wire_unpacker *u, const Spark__Connect__Relation *from, relation **out) {
  if (u->level == RELATION_MOST_STEPS + RELATION_DEEPEST) {
    return error_set(u->error, HF_E_LIMIT, "relations are nested deeper than %d",
                     RELATION_MOST_STEPS + RELATION_DEEPEST);
  }
  u->level++;
  hf_status status = decode_kind(u, from, out);
  u->level--;
  return status;
}

hf_status relation_unpack(const void *bytes, size_t length, engine *planner, const relation_names *names,
                          relation **out, hf_error *error) {
  wire_unpacker u = {.planner = planner, .names = names, .error = error};
  HF_TRY(wire_check(&spark__connect__relation__descriptor, bytes, length, error));
  u.arena = arena_new();
  Spark__Connect__Relation *message =
      u.arena == NULL ? NULL : spark__connect__relation__unpack(NULL, length, bytes);
  if (message == NULL) {
    hf_status failed = u.arena == NULL ? wire_unpack_no_memory(&u) : wire_malformed(&u, "damaged bytes");
    arena_free(u.arena);
    return failed;
  }
  hf_status status = wire_decode(&u, message, out);
  spark__connect__relation__free_unpacked(message, NULL);
  arena_free(u.arena);
  return status;
}
