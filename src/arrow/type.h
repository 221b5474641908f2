/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The type struct: one tree for Arrow, DuckDB and (later) Spark spellings, and
 * the schema of a result. Immutable; all memory is the arena's it was made in.
 * Thread: any.
 */
#ifndef HF_ARROW_TYPE_H
#define HF_ARROW_TYPE_H

#include "base/arena.h"
#include "base/buf.h"

typedef enum type_kind {
  TYPE_NULL,
  TYPE_BOOLEAN,
  TYPE_TINYINT,
  TYPE_SMALLINT,
  TYPE_INTEGER,
  TYPE_BIGINT,
  TYPE_HUGEINT,
  TYPE_UTINYINT,
  TYPE_USMALLINT,
  TYPE_UINTEGER,
  TYPE_UBIGINT,
  TYPE_UHUGEINT,
  TYPE_FLOAT,
  TYPE_DOUBLE,
  TYPE_DECIMAL,
  TYPE_BIGNUM,
  TYPE_DATE,
  TYPE_TIME,
  TYPE_TIME_NS,
  TYPE_TIME_TZ,
  TYPE_TIMESTAMP,
  TYPE_TIMESTAMP_S,
  TYPE_TIMESTAMP_MS,
  TYPE_TIMESTAMP_NS,
  TYPE_TIMESTAMP_TZ,
  TYPE_INTERVAL,
  TYPE_VARCHAR,
  TYPE_JSON,
  TYPE_BLOB,
  TYPE_BIT,
  TYPE_UUID,
  TYPE_GEOMETRY, /* without a coordinate reference system; crosses as WKB */
  TYPE_ENUM,
  TYPE_LIST,
  TYPE_ARRAY,
  TYPE_STRUCT,
  TYPE_MAP,
  TYPE_UNION,
  TYPE_KIND_COUNT
} type_kind;

typedef struct data_type data_type;
struct data_type {
  type_kind kind;
  uint8_t width, scale; /* DECIMAL */
  uint64_t array_size;  /* ARRAY: elements */
  size_t n_children;    /* LIST, ARRAY 1; MAP 2 (key, value); STRUCT, UNION their fields */
  const data_type *const *children;
  size_t n_names; /* STRUCT, UNION: n_children field names; ENUM: its values */
  const char *const *names;
};

typedef struct column {
  const char *name; /* as the user gave it: may be empty, repeated or odd; never NULL */
  const data_type *type;
} column;

typedef struct schema {
  size_t n_columns;
  const column *columns;
} schema;

/* Appends the type as DuckDB parses it: DECIMAL(15,2), STRUCT("a" INTEGER), ENUM('x', 'y') … */
void data_type_to_sql(const data_type *type, buf *out);
/* Returns the name of a kind as DuckDB spells it, such as "TIMESTAMP WITH TIME ZONE"; static. */
const char *type_kind_name(type_kind kind);
bool data_type_equal(const data_type *a, const data_type *b);
/* Tells whether the tree holds a type of this kind at any depth. */
bool data_type_contains(const data_type *type, type_kind kind);
/* Bytes of a value in DuckDB's Arrow array of the type, where BOOLEAN is bool8, DECIMAL has 128 bits, and an ENUM its index;
 * 0: not of one size. */
size_t data_type_value_bytes(const data_type *type);
/* Copies into another arena; NULL for lack of memory. */
const data_type *data_type_copy(const data_type *type, arena *a);
hf_status schema_copy(const schema *from, arena *a, schema *out, hf_error *error);
/* The columns as blocks hold them: an ENUM, at any depth, is VARCHAR. Borrows names and all other types from `from`. */
hf_status schema_in_blocks(const schema *from, arena *a, schema *out, hf_error *error);
bool schema_equal(const schema *a, const schema *b);

/*
 * Reads the type out of an Arrow field (client data). Errors: UNSUPPORTED names the Arrow format.
 * Source: https://arrow.apache.org/docs/format/CDataInterface.html#data-type-description-format-strings
 */
hf_status data_type_from_arrow(const struct ArrowSchema *field, arena *a, const data_type **out,
                               hf_error *error);
/* Makes the block face's schema (arrow/batch.h) of columns, under their names: what DuckDB's arrays of these types
 * have, with time zones as UTC and an ENUM as text. Owned by *out. */
hf_status arrow_schema_of_columns(const schema *columns, struct ArrowSchema *out, hf_error *error);

#endif
