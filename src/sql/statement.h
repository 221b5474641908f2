/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements: a token pass that splits a script and reads the head of each
 * statement. Everything that is not on the allow-list is refused by name.
 * Thread: any.
 */
#ifndef HF_PLAN_STATEMENT_H
#define HF_PLAN_STATEMENT_H

#include "base/arena.h"

typedef enum statement_kind {
  STATEMENT_QUERY,         /* SELECT, FROM, VALUES, WITH, TABLE, DESCRIBE <query>, SUMMARIZE, PIVOT, ( … */
  STATEMENT_CACHE_TABLE,   /* CACHE [LAZY] TABLE name [OPTIONS ('storageLevel' 'x', …)] [[AS] query] */
  STATEMENT_UNCACHE_TABLE, /* UNCACHE TABLE [IF EXISTS] name */
  STATEMENT_CLEAR_CACHE,
  STATEMENT_REFRESH_TABLE, /* REFRESH TABLE name */
  STATEMENT_REFRESH_PATH,  /* REFRESH 'path' or "path"; name is the path */
  STATEMENT_SHOW_CACHE,
  STATEMENT_SHOW_TABLES,  /* SHOW TABLES | SHOW VIEWS */
  STATEMENT_SHOW_SETTING, /* SHOW key; name "all": SHOW ALL / SHOW SETTINGS */
  STATEMENT_CREATE_VIEW,  /* CREATE [OR REPLACE] [TEMP[ORARY]] VIEW [IF NOT EXISTS] name AS query */
  STATEMENT_DROP_VIEW,    /* DROP VIEW [IF EXISTS] name */
  STATEMENT_EXPLAIN,      /* EXPLAIN [ANALYZE] query */
  STATEMENT_SET,          /* SET [SESSION] key = value | SET key TO value */
  STATEMENT_RESET,        /* RESET key */
  STATEMENT_EMPTY         /* nothing but comments */
} statement_kind;

typedef struct statement {
  statement_kind kind;
  const char *name;         /* table, view or setting; unquoted */
  const char *value;        /* SET */
  const char *level;        /* CACHE TABLE: storage level, or NULL */
  const char *partition_by; /* CACHE TABLE: names of columns as they were given, or NULL */
  uint64_t partitions;      /* of that; 0: not given */
  const char *query;        /* text of the query inside, or NULL */
  int64_t query_position;   /* its byte offset in the statement */
  bool lazy, if_exists, if_not_exists, or_replace, analyze;
} statement;

/* Reads one statement (a trailing ';' is fine). Errors: SYNTAX with position, STATEMENT_REFUSED naming the keyword. */
hf_status statement_read(const char *sql, arena *a, statement *out, hf_error *error);

/*
 * Finds the end of the first statement of a script: the offset behind its ';', or 0 when no ';' outside quotes,
 * dollar quotes and comments is there yet (an interactive shell reads on).
 */
size_t statement_end(const char *script, size_t length);

#endif
