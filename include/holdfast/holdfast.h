/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public C API of Holdfast: compute an expensive DataFrame once, hold the
 * result, reuse it.
 *
 * Ownership. `hf_*_open`, `hf_*_new` and every `out` parameter that receives a
 * handle return it owned by the caller; it is released by the matching
 * `hf_*_close` or `hf_*_free`, each of which accepts NULL. Text that a function
 * returns by `char **` is released with `hf_text_free`. Arrow structures are
 * released by their own `release` callback. Input pointers are borrowed for the
 * call unless the function says that it takes them.
 *
 * Errors. A function that can fail returns `hf_status`: HF_OK (0) or a negative
 * code from the list below (docs/errors.md explains each). The last parameter
 * `error` may be NULL; else it receives the details and is released with
 * `hf_error_reset`. After a failure all other outputs are untouched.
 *
 * Text is UTF-8 and ends with a NUL; other bytes are HF_E_INVALID_ARGUMENT.
 *
 * Threads. A session, its DataFrames and expressions may be used from several
 * threads at once: they are immutable, and every function here may run beside any
 * other. The handle itself is one thread's to free: none may be inside a call on it
 * then, or begin one. A result stream is read by one thread at a time.
 */
#ifndef HOLDFAST_HOLDFAST_H
#define HOLDFAST_HOLDFAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ Arrow
 * The Arrow C data and C stream interfaces.
 * Source: https://arrow.apache.org/docs/format/CDataInterface.html */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char *format;
  const char *name;
  const char *metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema **children;
  struct ArrowSchema *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
  int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
  const char *(*get_last_error)(struct ArrowArrayStream *);
  void (*release)(struct ArrowArrayStream *);
  void *private_data;
};
#endif

/* ----------------------------------------------------------------- errors */

/* HF_OK or one of the negative HF_E_* codes. */
typedef int32_t hf_status;

/* The order is that of the rows in src/base/errors.def; a build fails when the two differ. */
enum {
  HF_OK = 0,
  HF_E_INVALID_ARGUMENT = -1,
  HF_E_SYNTAX = -2,
  HF_E_TABLE_NOT_FOUND = -3,
  HF_E_COLUMN_NOT_FOUND = -4,
  HF_E_FUNCTION_NOT_FOUND = -5,
  HF_E_BIND = -6,
  HF_E_CAST = -7,
  HF_E_OVERFLOW = -8,
  HF_E_DIVIDE_BY_ZERO = -9,
  HF_E_QUERY = -10,
  HF_E_FILE_NOT_FOUND = -11,
  HF_E_FILE_FORMAT = -12,
  HF_E_STATEMENT_REFUSED = -13,
  HF_E_FUNCTION_REFUSED = -14,
  HF_E_PATH_REFUSED = -15,
  HF_E_SETTING_UNKNOWN = -16,
  HF_E_SETTING_VALUE = -17,
  HF_E_NAME_EXISTS = -18,
  HF_E_OUT_OF_MEMORY = -19,
  HF_E_DISK_FULL = -20,
  HF_E_IO = -21,
  HF_E_CANCELLED = -22,
  HF_E_BLOCK_MISSING = -23,
  HF_E_BLOCK_CORRUPT = -24,
  HF_E_HELD_MISMATCH = -25,
  HF_E_HELD_FOREIGN = -26,
  HF_E_SESSION_CLOSED = -27,
  HF_E_TASK_LOST = -28,
  HF_E_LIMIT = -29,
  HF_E_UNSUPPORTED = -30,
  HF_E_VERSION = -31,
  HF_E_WORK_DIR = -32,
  HF_E_PROTOCOL = -33,
  HF_E_INTERNAL = -34,
  HF_E_STATE_DIR = -35
};

/* Who can do something about an error, and whether trying again can help. */
typedef enum hf_error_class {
  HF_CLASS_NONE = 0,
  HF_CLASS_USER,      /* the query, its input or its settings; never tried again */
  HF_CLASS_RETRYABLE, /* the same work may succeed when it is tried again */
  HF_CLASS_FETCH,     /* a block could not be read back */
  HF_CLASS_RESOURCE,  /* memory, disk or a named limit */
  HF_CLASS_FATAL      /* a defect of Holdfast */
} hf_error_class;

/* Details of a failure. Zero-initialise; release with hf_error_reset. */
typedef struct hf_error {
  hf_status code;
  hf_error_class error_class;
  char sqlstate[6];
  uint64_t job;     /* 0: not known */
  uint32_t stage;   /* 0: not known */
  uint32_t task;    /* 0: not known; counts from 1 */
  uint32_t attempt; /* 0: not known; counts from 1 */
  char executor[40];
  int64_t position; /* byte offset in the SQL text, -1 or 0 with code HF_OK: not known */
  char *message;    /* what was found and what was expected */
  char *hint;       /* what to do; may be NULL */
  char *cause;      /* the underlying text, of the operating system or DuckDB; may be NULL */
} hf_error;

/* Releases what the error owns and zeroes it. Accepts NULL and a zeroed struct. */
void hf_error_reset(hf_error *error);

/* Returns the name of a status code, such as "COLUMN_NOT_FOUND"; static, never NULL. */
const char *hf_status_name(hf_status status);

/* Returns "0.1.0 (DuckDB v1.5.5)" or alike; static. */
const char *hf_version(void);

/* Releases text that a function of this API returned. Accepts NULL. */
void hf_text_free(char *text);

/* ---------------------------------------------------------------- session */

typedef struct hf_session hf_session;
typedef struct hf_df hf_df;
typedef struct hf_cancel hf_cancel;

/* One setting: a key of docs/configuration.md and its value as text. */
typedef struct hf_setting {
  const char *key;
  const char *value;
} hf_setting;

/*
 * Opens a session. `uri` "local" (or NULL) starts an engine inside this process
 * with the given settings (`settings` may be NULL when `n_settings` is 0).
 * With the setting `state_dir` the session goes on where the last one on that
 * directory ended, after an exit of any kind: its views, settings and held results
 * are there (docs/state-dir.md).
 * Errors: HF_E_SETTING_UNKNOWN, HF_E_SETTING_VALUE, HF_E_STATE_DIR (in use by
 * another process, which is named; damaged; of another version), HF_E_WORK_DIR (cannot be
 * created or is locked by another process), HF_E_VERSION (another libduckdb than
 * the pinned one), HF_E_UNSUPPORTED (another kind of uri).
 * Thread: any. Cost: opens no DuckDB instance before the first query needs it.
 */
hf_status hf_session_open(const char *uri, const hf_setting *settings, size_t n_settings, hf_session **out,
                          hf_error *error);

/* Opens another session on the engine of `peer`: own names, settings and holds, shared threads and memory. */
hf_status hf_session_new(hf_session *peer, hf_session **out, hf_error *error);

/*
 * Closes a session: cancels its running queries, removes its views and held
 * results with their files. The last session of an engine ends the engine and
 * removes its work directory. Result streams that are still open stay readable
 * until they are released. The session of a state directory keeps its views,
 * settings, and the held results that a name leads to. Accepts NULL.
 */
void hf_session_close(hf_session *session);

/* Changes one setting for queries started from now on. Errors: HF_E_SETTING_UNKNOWN, HF_E_SETTING_VALUE. */
hf_status hf_session_set(hf_session *session, const char *key, const char *value, hf_error *error);

/* Returns the value in force as text, owned by the caller. Errors: HF_E_SETTING_UNKNOWN. */
hf_status hf_session_get(hf_session *session, const char *key, char **out, hf_error *error);

/* -------------------------------------------------------------- DataFrames */

/*
 * Makes a DataFrame from one SQL statement. A query (SELECT, FROM, VALUES, WITH,
 * DESCRIBE, SUMMARIZE) is parsed and its names are resolved now, and it runs when
 * an action asks. A command (CACHE TABLE, UNCACHE TABLE, CLEAR CACHE, REFRESH
 * TABLE, SHOW CACHE, SHOW TABLES, CREATE VIEW, DROP VIEW, SET, RESET, EXPLAIN)
 * runs now; the DataFrame holds its answer.
 * Errors: HF_E_SYNTAX (with `position`), HF_E_TABLE_NOT_FOUND, HF_E_STATEMENT_REFUSED,
 * HF_E_FUNCTION_REFUSED, HF_E_PATH_REFUSED and what the command itself meets.
 */
hf_status hf_session_sql(hf_session *session, const char *sql, hf_df **out, hf_error *error);

/*
 * Makes a DataFrame that reads files. `format` is "parquet", "csv" or "json";
 * `paths` are file names or glob patterns; `options` are reader options by name,
 * such as {"header", "true"}.
 * Errors: HF_E_FILE_NOT_FOUND, HF_E_FILE_FORMAT, HF_E_PATH_REFUSED, HF_E_INVALID_ARGUMENT.
 */
hf_status hf_session_read(hf_session *session, const char *format, const char *const *paths, size_t n_paths,
                          const hf_setting *options, size_t n_options, hf_df **out, hf_error *error);

/*
 * Makes a DataFrame of the rows of an Arrow stream. Takes the stream: it is read
 * to its end now and released, also on failure. The rows lie in the work
 * directory until the session closes.
 * Errors: HF_E_UNSUPPORTED (an Arrow type that is not taken, by name), HF_E_DISK_FULL, HF_E_INVALID_ARGUMENT.
 */
hf_status hf_session_from_stream(hf_session *session, struct ArrowArrayStream *stream, hf_df **out,
                                 hf_error *error);

/* Releases the handle. What it held stays held until unpersist or the session's end. Accepts NULL. */
void hf_df_free(hf_df *df);

/* Names the DataFrame for SQL text of this session. Errors: HF_E_NAME_EXISTS unless `replace`. */
hf_status hf_df_create_view(hf_df *df, const char *name, bool replace, hf_error *error);

/* Returns the Arrow schema of the result, without running it. */
hf_status hf_df_schema(hf_df *df, struct ArrowSchema *out, hf_error *error);

/* ---------------------------------------------------------------- building
 * Steps. Each makes a DataFrame out of one or two others, runs nothing, and leaves them as they are:
 *
 *   hf_df_filter(sales, "amount > 0", &kept, &error);
 *   hf_df_aggregate(kept, HF_LIST("region"), HF_LIST("sum(amount) AS total"), &totals, &error);
 *   hf_df_order_by(totals, HF_LIST("total DESC"), &sorted, &error);
 *
 * Expressions are SQL text, one in each: as they stand in a SELECT list, with any function, CASE, window or sub-select;
 * a sub-select may name the session's views. Text is parsed alone, so that it cannot leave its place: "x) FROM t --" is
 * a syntax error. Values and names that come from elsewhere are made into text by hf_expr_* (below). A column is called
 * by its name, in double quotes when it is not a plain word: "odd name"; by alias and name after hf_df_alias: s.amount.
 * Where a *column* or *name* is asked for instead, it is the name itself, without quotes.
 *
 * A step is checked and its columns are fixed when it is made. Errors of every step, beside its own:
 * HF_E_INVALID_ARGUMENT (an argument that is NULL, empty or not UTF-8; DataFrames of two sessions; the DataFrame of a
 * command without an answer), HF_E_SYNTAX, HF_E_COLUMN_NOT_FOUND (the hint names the nearest column),
 * HF_E_TABLE_NOT_FOUND, HF_E_FUNCTION_NOT_FOUND, HF_E_FUNCTION_REFUSED, HF_E_BIND (a wrong type, an ambiguous name, an
 * aggregate where none may stand), each naming the expression, with `position` in it; HF_E_LIMIT (more steps on top of
 * each other than can be planned: cache the DataFrame in between); HF_E_SESSION_CLOSED.
 * Thread: any. Cost: binds the step, about 1 ms; the files below it were looked at when they were named. */

/* Texts or names in order; borrowed. {NULL, 0}: none. */
typedef struct hf_list {
  const char *const *items;
  size_t n;
} hf_list;

#ifndef __cplusplus
/* A list of at least one text, in place: HF_LIST("region", "sum(amount) AS total"). Lives as long as its block. */
#define HF_LIST(...)                             \
  ((hf_list){(const char *const[]){__VA_ARGS__}, \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)})
#endif

/* Selects: columns, expressions with AS name, windows, *; no aggregates. Of an expression without a name, DuckDB makes
 * one. Names that are given beside each other do not see each other.
 * Errors: HF_E_INVALID_ARGUMENT (an empty list). */
hf_status hf_df_select(hf_df *df, hf_list expressions, hf_df **out, hf_error *error);

/* Keeps the rows for which the condition is true; false and NULL are dropped. */
hf_status hf_df_filter(hf_df *df, const char *condition, hf_df **out, hf_error *error);

/* Puts the expression's value into the column of that name: in place of the one that is there (letter case does not
 * count; the name is as given), else behind the last. The expression sees the columns as they were. */
hf_status hf_df_with_column(hf_df *df, const char *name, const char *expression, hf_df **out,
                            hf_error *error);

/* Calls a column otherwise; its place stays. Errors: HF_E_COLUMN_NOT_FOUND; HF_E_INVALID_ARGUMENT (several columns have
 * the old name). */
hf_status hf_df_rename(hf_df *df, const char *old_name, const char *name, hf_df **out, hf_error *error);

/* Leaves columns out; a name that is not there is no error. Errors: HF_E_INVALID_ARGUMENT (no column would be left). */
hf_status hf_df_drop(hf_df *df, hf_list columns, hf_df **out, hf_error *error);

/*
 * Makes one row of each group: the groups' expressions, then the aggregates. Without groups there is exactly one row,
 * also over no rows; without aggregates the distinct groups. Errors: HF_E_INVALID_ARGUMENT (neither;
 * a group that is a constant: "1" is no position).
 */
hf_status hf_df_aggregate(hf_df *df, hf_list groups, hf_list aggregates, hf_df **out, hf_error *error);

typedef enum hf_join {
  HF_JOIN_INNER = 0,
  HF_JOIN_LEFT,  /* and rows of the left that match none, with NULLs */
  HF_JOIN_RIGHT, /* and rows of the right */
  HF_JOIN_FULL,  /* and rows of either side */
  HF_JOIN_SEMI,  /* rows of the left that match one or more; only its columns */
  HF_JOIN_ANTI,  /* rows of the left that match none; only its columns */
  HF_JOIN_CROSS  /* every row with every row: no condition */
} hf_join;

/*
 * Joins. The condition calls columns by alias and name where both sides have the name: give the sides names by
 * hf_df_alias first, as in "o.customer = c.id". Columns: those of the left, then of the right.
 * Errors: HF_E_INVALID_ARGUMENT (`condition` NULL although the join is not HF_JOIN_CROSS, or the other way round).
 */
hf_status hf_df_join(hf_df *left, hf_df *right, const char *condition, hf_join type, hf_df **out,
                     hf_error *error);

/* Joins on columns that both sides have and that are equal; each is there once in the result, first.
 * Errors: HF_E_INVALID_ARGUMENT (no column; HF_JOIN_CROSS). */
hf_status hf_df_join_using(hf_df *left, hf_df *right, hf_list columns, hf_join type, hf_df **out,
                           hf_error *error);

/* Gives a name under which expressions of the next step may call the columns: a.x. */
hf_status hf_df_alias(hf_df *df, const char *name, hf_df **out, hf_error *error);

/* Sorts by keys: expressions, each with ASC or DESC and NULLS FIRST or NULLS LAST behind it if wanted; what is not said
 * is as the settings sql.default_order and sql.default_null_order say. Errors: HF_E_INVALID_ARGUMENT (no key; a constant:
 * "1" is no position). */
hf_status hf_df_order_by(hf_df *df, hf_list keys, hf_df **out, hf_error *error);

/* For hf_df_limit: all rows behind the offset. */
#define HF_NO_LIMIT UINT64_MAX

/* Skips `offset` rows and keeps at most `limit` of those behind. Which rows these are is known only below an order. */
hf_status hf_df_limit(hf_df *df, uint64_t limit, uint64_t offset, hf_df **out, hf_error *error);

/* All rows of both, by position, with their common types (UNION ALL); names are the left's. Errors: HF_E_BIND (another
 * number of columns, types without a common one). */
hf_status hf_df_union(hf_df *left, hf_df *right, hf_df **out, hf_error *error);
/* All rows of both, by name; a column that only one has is NULL in the rows of the other. */
hf_status hf_df_union_by_name(hf_df *left, hf_df *right, hf_df **out, hf_error *error);
/* Rows that both have, by position. `all`: as often as both have them, else once. NULLs are equal here. */
hf_status hf_df_intersect(hf_df *left, hf_df *right, bool all, hf_df **out, hf_error *error);
/* Rows of the left that the right has not. `all`: each as often as the left has it more, else once. */
hf_status hf_df_except(hf_df *left, hf_df *right, bool all, hf_df **out, hf_error *error);

/* Drops rows that are the same in these columns, but for the first of each; an empty list: in all columns. Which is the
 * first is known only below an order. */
hf_status hf_df_distinct(hf_df *df, hf_list columns, hf_df **out, hf_error *error);

/*
 * Changes no row, but says how the result is dealt when it is held: hf_df_cache of it, or of nothing but names over it, writes
 * `partitions` (2 to 4096) partitions by the hash of these columns. Joins, groups, DISTINCT and windows by just these columns
 * then read it without moving its rows, in queries of several tasks. The rows are in no order.
 * Errors: HF_E_COLUMN_NOT_FOUND; HF_E_INVALID_ARGUMENT (no column, a column twice, of a type that cannot be dealt by, such as
 * DOUBLE or a list, or a number of partitions that is not there).
 */
hf_status hf_df_repartition(hf_df *df, uint32_t partitions, hf_list columns, hf_df **out, hf_error *error);

/* ------------------------------------------------------------- expressions
 * Expressions out of values and names that may hold anything: quotes, semicolons, a user's input. They render to text
 * for the steps above, in which each part is quoted so that it cannot leave its place:
 *
 *   hf_expr *is_theirs = hf_expr_binary(hf_expr_column("owner"), "=", hf_expr_string(input));
 *   hf_df_filter(df, hf_expr_text(is_theirs), &out, &error);
 *   hf_expr_free(is_theirs);
 *
 * Ownership. A function that makes an expression takes those that it is given, so that calls nest and one free at the
 * end is enough. An expression is immutable; hf_expr_copy gives another reference to use it twice.
 *
 * Errors. An expression that cannot be made (a NULL, a name that is empty or not UTF-8, an operator that there is not, a
 * text of more than 1 MiB) is a wrong expression, and so is everything made of it: hf_expr_text gives NULL, which no
 * step takes, and hf_expr_error tells what was wrong first. Makers never return NULL; what the query itself cannot do
 * (an unknown column) is found by the step.
 * Thread: any; the count of references is atomic. */

typedef struct hf_expr hf_expr;

#ifndef __cplusplus
/* Expressions in place, as two arguments: hf_expr_call("round", HF_EXPRS(x, hf_expr_int64(2))). */
#define HF_EXPRS(...) (hf_expr *const[]){__VA_ARGS__}, sizeof((hf_expr *[]){__VA_ARGS__}) / sizeof(hf_expr *)
#endif

/* Returns the SQL text, borrowed until the expression is freed; NULL of a wrong expression and of NULL. */
const char *hf_expr_text(const hf_expr *expr);
/* Returns HF_OK, or the code and details of what makes the expression wrong. */
hf_status hf_expr_error(const hf_expr *expr, hf_error *error);
/* Returns another reference, to be freed as well. */
hf_expr *hf_expr_copy(const hf_expr *expr);
/* Drops a reference. Accepts NULL. */
void hf_expr_free(hf_expr *expr);

/* A column by its name, whatever is in it. */
hf_expr *hf_expr_column(const char *name);
/* A column of the side that hf_df_alias called so. */
hf_expr *hf_expr_column_of(const char *alias, const char *name);
/* SQL text as a part of an expression: one expression, checked not to leave its place, in parentheses. */
hf_expr *hf_expr_sql(const char *text);

/* A whole number, of the smallest of INTEGER and BIGINT that holds it. */
hf_expr *hf_expr_int64(int64_t value);
/* A DOUBLE, exactly this one; NaN and infinities too. */
hf_expr *hf_expr_double(double value);
hf_expr *hf_expr_bool(bool value);
/* A VARCHAR. */
hf_expr *hf_expr_string(const char *text);
hf_expr *hf_expr_null(void);
/* A constant of any type by its text: hf_expr_typed("DECIMAL(10,2)", "12.50"), ("DATE", "2024-02-29"). */
hf_expr *hf_expr_typed(const char *type, const char *text);

/* A function or aggregate by its name; of no arguments too: "count" counts rows then. */
hf_expr *hf_expr_call(const char *function, hf_expr *const *arguments, size_t n);
/* An aggregate of the distinct values. */
hf_expr *hf_expr_call_distinct(const char *function, hf_expr *const *arguments, size_t n);
/* An aggregate, not yet a window, of the rows for which the condition is true. */
hf_expr *hf_expr_filter(hf_expr *call, hf_expr *condition);

/* `operation` is one of = <> != < <= > >= + - * / // % ^ || & | << >> AND OR LIKE ILIKE GLOB, SIMILAR TO, NOT LIKE, NOT ILIKE,
 * IS DISTINCT FROM, IS NOT DISTINCT FROM; letter case does not count. The result stands in parentheses. */
hf_expr *hf_expr_binary(hf_expr *left, const char *operation, hf_expr *right);
/* One of NOT - ~. */
hf_expr *hf_expr_unary(const char *operation, hf_expr *operand);
hf_expr *hf_expr_is_null(hf_expr *operand);
/* Whether it equals one of the list; an empty list: false. */
hf_expr *hf_expr_in(hf_expr *operand, hf_expr *const *list, size_t n);
/* Both ends count. */
hf_expr *hf_expr_between(hf_expr *operand, hf_expr *low, hf_expr *high);
/* The value of the first condition that is true, else `otherwise` (NULL: SQL NULL). Takes n conditions and n values. */
hf_expr *hf_expr_case(hf_expr *const *conditions, hf_expr *const *values, size_t n, hf_expr *otherwise);
/* `type` as SQL spells it: "DECIMAL(10,2)", "STRUCT(a INTEGER)[]". A value that does not fit is HF_E_CAST when it runs. */
hf_expr *hf_expr_cast(hf_expr *operand, const char *type);
/* The same, NULL where a value does not fit. */
hf_expr *hf_expr_try_cast(hf_expr *operand, const char *type);

/* What the column is called; only at the top of an expression. */
hf_expr *hf_expr_alias(hf_expr *expr, const char *name);

typedef enum hf_nulls { HF_NULLS_DEFAULT = 0, HF_NULLS_FIRST, HF_NULLS_LAST } hf_nulls;
/* A key of hf_df_order_by or of a window; only at the top of an expression. */
hf_expr *hf_expr_order(hf_expr *expr, bool descending, hf_nulls nulls);

/* What a window function looks at; borrowed, so that several may share it. The texts are checked as hf_expr_sql does. */
typedef struct hf_window {
  hf_list partition_by; /* expressions; none: all rows are one partition */
  hf_list order_by;     /* keys, as of hf_df_order_by; none: no order */
  const char
      *frame; /* "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", also RANGE and GROUPS; NULL: as SQL has it */
} hf_window;

/* The function, over a window: a call of a window function or of an aggregate, filtered or not. */
hf_expr *hf_expr_over(hf_expr *call, const hf_window *window);

/* ----------------------------------------------------------------- actions */

/* Makes a token that cancels the action it is given to. Free it after that action has returned. */
hf_cancel *hf_cancel_new(void);
/* Cancels, from any thread or a signal handler; the action returns HF_E_CANCELLED. Accepts NULL. */
void hf_cancel_signal(hf_cancel *cancel);
void hf_cancel_free(hf_cancel *cancel);

/* What an action did; filled when it returns. */
typedef struct hf_profile {
  uint64_t job;
  uint64_t elapsed_us;   /* from the call to the committed result */
  uint64_t planning_us;  /* thereof parsing, binding and resolving names */
  uint64_t tasks_run;    /* tasks of this query and of the fills it started or waited for */
  uint64_t source_rows;  /* rows read from files and client data by those tasks */
  uint64_t source_files; /* files that those tasks were given to read */
  uint64_t held_hits;    /* held results read back that were there */
  uint64_t
      held_fills; /* held results that this action had computed and could read; what failed or was outdated counts not */
  uint64_t held_waits;          /* held results that it waited for while another action computed them */
  uint64_t held_inline;         /* held nodes computed inline, because a fill failed or was released */
  uint64_t held_rows;           /* rows read back from held results */
  uint64_t held_blocks;         /* blocks of held results that its tasks read … */
  uint64_t held_blocks_skipped; /* … and those of which was known that they hold no wanted row */
  uint64_t result_rows;
  uint64_t result_bytes;      /* bytes of Arrow data written for the result */
  uint64_t peak_memory_bytes; /* of the engine instance that ran the last task */
  char warning[240];          /* why something was computed inline; empty: nothing to say */
  uint64_t stages_run;        /* stages of this query and of its fills that ran at least one task */
  uint64_t widest_tasks;      /* the largest number of tasks with rows in one stage; 2 or more: distributed */
  char fallback[160];         /* why one task ran it although more were asked for; empty: none did */
  char reused[160]; /* the held results that were there, by name or cache id, ", " between them; cut to fit */
} hf_profile;

/*
 * What an action did stage by stage and task by task, together with the fills that it had computed or waited for.
 * Immutable, and valid until it is freed, also when the session has gone. Thread: any.
 */
typedef struct hf_breakdown hf_breakdown;

/* What attempts of tasks read and wrote: of one, or of a stage together. */
typedef struct hf_amounts {
  uint64_t wait_us;      /* in the queue of the executor */
  uint64_t run_us;       /* in a slot; attempts that ran at once count each */
  uint64_t source_rows;  /* given by readers of files, after the filters that these apply */
  uint64_t source_bytes; /* of the files that were given, in all columns; of a part of a file by its rows */
  uint64_t block_rows;   /* of earlier stages, held results and client data */
  uint64_t block_bytes;
  uint64_t held_rows;         /* thereof of held results */
  uint64_t held_blocks;       /* blocks of held results that were read … */
  uint64_t skipped_blocks;    /* … and those of which was known that they hold no wanted row */
  uint64_t rows, bytes;       /* written; of attempts that finished */
  uint64_t spill_bytes;       /* the most that lay in temporary files at a time, of any attempt */
  uint64_t peak_memory_bytes; /* of the engine instance and the sink, of any attempt */
} hf_amounts;

/* A stage. All text is borrowed until the breakdown is freed. */
typedef struct hf_stage_profile {
  uint64_t job;
  const char *held;         /* of a fill: the held result that it made, by name or cache id; else NULL */
  uint32_t stage;           /* in its job, from 1 */
  const char *what;         /* its operators; empty: the whole query */
  const char *why_one_task; /* why it is one task, empty when that is no loss; NULL: it is several */
  const char *sql;          /* its inputs are [input 0], [input 1] … */
  uint32_t tasks, partitions;
  uint32_t reads; /* inputs of later stages that it is: 2 and more were computed once for all */
  bool ordered;
  uint32_t attempts, failed_attempts; /* 0 attempts: it did not run */
  uint64_t elapsed_us;                /* from the first attempt that was submitted to the end of the last */
  hf_amounts amounts;                 /* of all attempts */
} hf_stage_profile;

/* An attempt of a task. */
typedef struct hf_attempt_profile {
  uint64_t job;
  uint32_t stage, task, attempt; /* from 1 */
  bool is_over;                  /* it has ended before the query did */
  bool is_local;                 /* what it read lay on the machine that it ran on */
  hf_status status;              /* is_over: HF_OK, or what it failed with */
  hf_amounts amounts;
} hf_attempt_profile;

/* Calls `each` for every stage, those of a fill before the stage that reads it; the row is borrowed for the call. NULL: none. */
void hf_breakdown_stages(const hf_breakdown *breakdown,
                         void (*each)(void *context, const hf_stage_profile *stage), void *context);
/* The same for every attempt, of all stages in the order of hf_breakdown_stages. */
void hf_breakdown_attempts(const hf_breakdown *breakdown,
                           void (*each)(void *context, const hf_attempt_profile *attempt), void *context);
/* The text of EXPLAIN ANALYZE. */
hf_status hf_breakdown_text(const hf_breakdown *breakdown, char **out, hf_error *error);
/* All of it as one JSON object on one line; docs/explain.md lists the names. */
hf_status hf_breakdown_json(const hf_breakdown *breakdown, char **out, hf_error *error);
/* Accepts NULL. */
void hf_breakdown_free(hf_breakdown *breakdown);

/*
 * Progress of a running action: `fraction` from 0 to 1, or -1 while it is not
 * known; `rows` read so far. Called on the thread of the action about ten times
 * a second; return false to cancel.
 */
typedef bool (*hf_progress_fn)(void *context, double fraction, uint64_t rows);

typedef struct hf_action_options {
  hf_progress_fn progress; /* NULL: none */
  void *progress_context;
  hf_cancel *cancel;   /* NULL: none */
  hf_profile *profile; /* NULL: none; written when the action returns, also on failure */
  /* NULL: none; else gets one of the caller's own when the action returns, also on failure; NULL when nothing ran */
  hf_breakdown **breakdown;
} hf_action_options;

/*
 * Runs the DataFrame and returns its rows as a stream of record batches. The
 * result lies committed in the work directory: reading it needs no slot, and
 * what was read is given back. `options` may be NULL.
 * Errors: those of the query; HF_E_CANCELLED; HF_E_OUT_OF_MEMORY; HF_E_DISK_FULL.
 */
hf_status hf_df_collect(hf_df *df, const hf_action_options *options, struct ArrowArrayStream *out,
                        hf_error *error);

/* Counts the rows. */
hf_status hf_df_count(hf_df *df, const hf_action_options *options, uint64_t *out, hf_error *error);

/* How a file is written. */
typedef struct hf_write_options {
  bool overwrite;                   /* a file that is there is replaced; else it is HF_E_NAME_EXISTS */
  const hf_setting *format_options; /* by name, their values as text */
  size_t n_format_options;
} hf_write_options;

/*
 * Runs the DataFrame and writes its rows to one Parquet file, in order when it has one. The file appears under its name
 * when it is complete; after a failure nothing is left, and a file that was there is still there. The directory must
 * exist. Both options may be NULL. Format options: compression (snappy, zstd, gzip, lz4, uncompressed …),
 * compression_level, row_group_size (rows).
 * Errors: those of hf_df_collect; HF_E_NAME_EXISTS; HF_E_PATH_REFUSED (not below `allow_path`, or in the work
 * directory); HF_E_FILE_NOT_FOUND (no such directory); HF_E_INVALID_ARGUMENT (an option, by name); HF_E_IO, HF_E_DISK_FULL.
 */
hf_status hf_df_write_parquet(hf_df *df, const char *path, const hf_write_options *options,
                              const hf_action_options *action, hf_error *error);

/* The same as CSV. Format options: header (true unless said), delim, quote, escape, nullstr, dateformat,
 * timestampformat, compression (gzip, zstd, none). */
hf_status hf_df_write_csv(hf_df *df, const char *path, const hf_write_options *options,
                          const hf_action_options *action, hf_error *error);

/* Describes how the DataFrame would run: stages, SQL, inputs, held nodes with hit or miss. Runs nothing. */
hf_status hf_df_explain(hf_df *df, char **out, hf_error *error);
/* Runs it, drops its rows, and gives the same with what happened: time, rows, bytes, memory and attempts of stages and
 * tasks. Errors: those of the query. `options` may be NULL. */
hf_status hf_df_explain_analyze(hf_df *df, const hf_action_options *options, char **out, hf_error *error);

/* ----------------------------------------------------------------- holding */

/* Returns a DataFrame that is held from its first action on: persist at the default level. Runs nothing. */
hf_status hf_df_cache(hf_df *df, hf_df **out, hf_error *error);

/*
 * The same with a storage level: NULL or one of NONE, DISK_ONLY, DISK_ONLY_2,
 * DISK_ONLY_3, MEMORY_ONLY, MEMORY_ONLY_2, MEMORY_AND_DISK, MEMORY_AND_DISK_2,
 * MEMORY_AND_DISK_DESER, OFF_HEAP. Every level is kept and told again; one store
 * (block files kept warm by the page cache) serves them all. NONE holds nothing.
 */
hf_status hf_df_persist(hf_df *df, const char *level, hf_df **out, hf_error *error);

/*
 * Lets the result of hf_df_cache or hf_df_persist go: its files are deleted and
 * every later use computes without filling again. `blocking` waits for the
 * files to be gone. Of a DataFrame that is not held: nothing happens, HF_OK.
 */
hf_status hf_df_unpersist(hf_df *df, bool blocking, hf_error *error);

typedef enum hf_hold_state {
  HF_HOLD_NOT_DECLARED = 0, /* never cached */
  HF_HOLD_DECLARED,         /* cached, not computed yet */
  HF_HOLD_PENDING,          /* being computed */
  HF_HOLD_MATERIALISED,     /* there */
  HF_HOLD_UNAVAILABLE,      /* there, on an executor that is away */
  HF_HOLD_RELEASED          /* let go by unpersist */
} hf_hold_state;

typedef struct hf_storage {
  hf_hold_state state;
  char level[32];
  char cache_id[37];
  uint64_t rows, bytes, hits;
  uint64_t generation; /* counts its computations, from 1 */
  bool indeterminate;  /* computing it again may give other rows */
} hf_storage;

/* Tells how the DataFrame is held. Never computes, claims or waits. */
hf_status hf_df_storage(hf_df *df, hf_storage *out, hf_error *error);

/* One held result of a listing. Texts live as long as the listing. */
typedef struct hf_hold {
  hf_storage storage;    /* cache_id, state, level, rows, bytes, hits, generation, indeterminate */
  const char *session;   /* id of the session that declared it */
  const char *name;      /* of CACHE TABLE; NULL: it has none */
  const char *last_drop; /* why its data were last dropped; NULL: never */
  uint64_t
      partitions; /* that its rows are dealt in, or attempts that its blocks lie in; 0 while it is not there */
  uint64_t declared_us;  /* µs since 1970-01-01 UTC */
  uint64_t last_read_us; /* the same; 0: never */
  uint64_t compute_us;   /* time that computing it took; 0 while it is not there */
  uint64_t saved_us;     /* hits × compute_us */
} hf_hold;

/*
 * Lists what the session holds, in the order in which it was declared: all that SHOW CACHE shows. What was let go is not
 * listed. *out is one block, released by hf_holds_free; NULL when *n is 0. Never computes, claims or waits for a
 * computation.
 */
hf_status hf_session_holds(hf_session *session, hf_hold **out, size_t *n, hf_error *error);
/* Releases a listing. Accepts NULL. */
void hf_holds_free(hf_hold *holds);

#ifdef __cplusplus
}
#endif
#endif
