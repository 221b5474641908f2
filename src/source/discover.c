/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the discovery of all formats shares: the reader's call as the user asked
 * for it, its columns, hive partitions, and errors that name a file.
 */
#include "source/discover.h"

#include "source/option.h"
#include "source/reader.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Bytes of the first file that are read to guess the length of a line. */
enum { SAMPLE_BYTES = 64 * 1024, COMPARED_ROWS = 20, LONGEST_COMPARED_LIST = 64, MOST_HIVE_KEYS = 32 };

hf_status discover_out_of_memory(const discovery *d) {
  return error_set(d->error, HF_E_OUT_OF_MEMORY, "no memory to find out what is in a file");
}

const char **discover_paths(const discovery *d) {
  const char **paths = arena_array(d->arena, d->files->n_files, sizeof *paths);
  for (size_t i = 0; paths != NULL && i < d->files->n_files; i++) {
    paths[i] = d->files->files[i].path;
  }
  return paths;
}

/* ------------------------------------------------------------------- hive */

typedef struct hive_key {
  const char *start;
  size_t length;
} hive_key;

/* The keys of the directories k=v in a path; returns how many, at most MOST_HIVE_KEYS. */
static size_t hive_keys_of(const char *path, hive_key *keys) {
  size_t n = 0;
  for (const char *part = path, *slash; (slash = strchr(part, '/')) != NULL; part = slash + 1) {
    const char *sign = memchr(part, '=', (size_t)(slash - part));
    bool is_key = sign != NULL && sign > part && memchr(part, '?', (size_t)(slash - part)) == NULL &&
                  memchr(sign + 1, '=', (size_t)(slash - sign - 1)) == NULL;
    if (is_key && n < MOST_HIVE_KEYS) {
      keys[n++] = (hive_key){part, (size_t)(sign - part)};
    }
  }
  return n;
}

static bool has_key(const hive_key *keys, size_t n, const char *name, size_t length) {
  for (size_t i = 0; i < n; i++) {
    if (keys[i].length == length && strncmp(keys[i].start, name, length) == 0) {
      return true;
    }
  }
  return false;
}

/* Whether the names of all files, as they were written, hold the same keys: then DuckDB reads them as partitions. */
static bool written_hive(const discovery *d) {
  hive_key first[MOST_HIVE_KEYS], keys[MOST_HIVE_KEYS];
  size_t n_first = hive_keys_of(d->files->written[0], first);
  bool same = n_first > 0;
  for (size_t i = 1; same && i < d->files->n_files; i++) {
    size_t n = hive_keys_of(d->files->written[i], keys);
    same = n == n_first;
    for (size_t k = 0; same && k < n; k++) {
      same = has_key(first, n_first, keys[k].start, keys[k].length);
    }
  }
  return same;
}

static bool is_hive(const discovery *d) {
  return option_value(d->request, "hive_partitioning") != NULL
             ? option_is_true(d->request, "hive_partitioning")
             : written_hive(d);
}

static const data_type *type_of(const discovery *d, const char *name, size_t length) {
  for (size_t i = 0; i < d->columns.n_columns; i++) {
    const char *column_name = d->columns.columns[i].name;
    if (strlen(column_name) == length && strncasecmp(column_name, name, length) == 0) {
      return d->columns.columns[i].type;
    }
  }
  return NULL;
}

/* hive_types={'year': 'BIGINT'}: what the paths of a part of the files look like must not decide. */
static void append_hive_types(const discovery *d, buf *out) {
  hive_key keys[MOST_HIVE_KEYS];
  size_t n = hive_keys_of(d->files->files[0].path, keys);
  column *typed = arena_array(d->arena, n == 0 ? 1 : n, sizeof *typed);
  size_t n_typed = 0;
  for (size_t i = 0; typed != NULL && i < n; i++) {
    const data_type *type = type_of(d, keys[i].start, keys[i].length);
    const char *name = arena_strndup(d->arena, keys[i].start, keys[i].length);
    if (type != NULL && name != NULL && !has_key(keys, i, keys[i].start, keys[i].length)) {
      typed[n_typed++] = (column){name, type};
    }
  }
  if (n_typed > 0) {
    buf_text(out, ", hive_types = ");
    discover_columns_literal(typed, n_typed, out);
  }
}

void discover_hive_options(const discovery *d, bool with_types, buf *out) {
  const char *types = option_value(d->request, "hive_types");
  const char *cast = option_value(d->request, "hive_types_autocast");
  bool hive = is_hive(d) || (types != NULL && option_value(d->request, "hive_partitioning") == NULL);
  buf_text(out, hive ? ", hive_partitioning = true" : ", hive_partitioning = false");
  if (hive && with_types) {
    append_hive_types(d, out);
    buf_text(out, ", hive_types_autocast = false");
  } else {
    if (types != NULL) {
      buf_printf(out, ", hive_types = %s", types);
    }
    if (cast != NULL) {
      buf_printf(out, ", hive_types_autocast = %s", cast);
    }
  }
}

/* ------------------------------------------------------------------- calls */

static bool is_hive_option(const char *name) {
  return strncasecmp(name, "hive_", 5) == 0;
}

void discover_call(const discovery *d, const char *const *files, size_t n_files, call_options options,
                   buf *out) {
  static const char *const readers[] = {"read_parquet(", "read_csv(", "read_json("};
  source_format format = d->request->format;
  buf_text(out, readers[format]);
  if (files == NULL) {
    buf_text(out, READER_FILES);
  } else {
    reader_file_list(files, n_files, out);
  }
  for (size_t i = 0; i < d->request->n_options; i++) {
    const source_option *option = &d->request->options[i];
    option_role role = option_role_of(format, option->name);
    bool is_spelled_out =
        options == CALL_RESOLVED && (role == OPTION_DETECT || strcasecmp(option->name, "union_by_name") == 0);
    if (!is_spelled_out && !is_hive_option(option->name)) {
      buf_printf(out, ", %s = %s", option->name, option->value_sql);
    }
  }
}

void discover_columns_literal(const column *columns, size_t n_columns, buf *out) {
  buf_char(out, '{');
  for (size_t i = 0; i < n_columns; i++) {
    buf type = {0};
    data_type_to_sql(columns[i].type, &type);
    buf_text(out, i == 0 ? "" : ", ");
    buf_sql_string(out, columns[i].name);
    buf_text(out, ": ");
    buf_sql_string(out, buf_cstr(&type));
    out->failed = out->failed || type.failed;
    buf_reset(&type);
  }
  buf_char(out, '}');
}

/* ------------------------------------------------------------------ errors */

/* Errors of what is in a file become FILE_FORMAT that names it; those of options and resources stay. */
static hf_status name_the_file(const discovery *d, hf_status status) {
  bool stays = status == HF_E_OUT_OF_MEMORY || status == HF_E_CANCELLED || status == HF_E_BIND ||
               status == HF_E_INVALID_ARGUMENT || status == HF_E_LIMIT || status == HF_E_INTERNAL ||
               status == HF_E_UNSUPPORTED;
  const char *more = d->files->n_files > 1 ? " and others" : "";
  if (status == HF_OK) {
    return HF_OK;
  }
  if (stays) {
    error_wrap(d->error, "reading %s%s", d->files->written[0], more);
    return status;
  }
  hf_error found = {0};
  error_move(&found, d->error);
  error_set(d->error, HF_E_FILE_FORMAT, "%s%s cannot be read: %s", d->files->written[0], more,
            found.message == NULL ? "" : found.message);
  error_cause(d->error, found.cause);
  hf_error_reset(&found);
  return HF_E_FILE_FORMAT;
}

/* ----------------------------------------------------------------- columns */

/* Counts the columns in front of those that the reader itself adds. */
static size_t count_file_columns(const discovery *d) {
  const char *filename = option_value(d->request, "filename");
  bool has_filename = filename != NULL && (option_is_true(d->request, "filename") || filename[0] == '\'');
  hive_key keys[MOST_HIVE_KEYS];
  size_t n_keys = is_hive(d) ? hive_keys_of(d->files->files[0].path, keys) : 0;
  size_t n = d->columns.n_columns;
  while (n > 0 && n_keys > 0 &&
         has_key(keys, n_keys, d->columns.columns[n - 1].name, strlen(d->columns.columns[n - 1].name))) {
    n--;
  }
  return has_filename && n > 0 ? n - 1 : n;
}

static size_t directory_bytes(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? 0 : (size_t)(slash - path);
}

static bool is_other_directory(const char *path, const char *other) {
  size_t length = directory_bytes(path);
  return length != directory_bytes(other) || memcmp(path, other, length) != 0;
}

/* Whether the values of all keys are of digits, so few that each is a BIGINT; a leading zero makes DuckDB see a text. */
static bool has_plain_numbers(const char *path) {
  enum { DIGITS_OF_EVERY_BIGINT = 18 };
  hive_key keys[MOST_HIVE_KEYS];
  size_t n = hive_keys_of(path, keys);
  bool are_plain = true;
  for (size_t i = 0; are_plain && i < n; i++) {
    const char *value = keys[i].start + keys[i].length + 1;
    size_t length = strcspn(value, "/");
    are_plain = length > 0 && length <= DIGITS_OF_EVERY_BIGINT && strspn(value, "0123456789") == length &&
                (value[0] != '0' || length == 1);
  }
  return are_plain;
}

/*
 * How many files the columns come from; these are moved to the front. The columns of Parquet files are those of the first
 * one, but for the types of hive keys, which depend on the values in all directories: a file of each does, and one of all
 * that have plain numbers. Else all of them.
 */
static size_t choose_files(const discovery *d, const char **paths) {
  size_t n = 1, all = d->files->n_files;
  if (d->request->format != SOURCE_PARQUET || option_is_true(d->request, "union_by_name")) {
    return all;
  }
  bool hive = is_hive(d) || option_value(d->request, "hive_types") != NULL;
  bool has_plain = hive && has_plain_numbers(paths[0]);
  const char *last = paths[0];
  for (size_t i = 1; hive && i < all; i++) {
    const char *path = paths[i];
    bool is_plain = is_other_directory(path, last) && has_plain_numbers(path);
    if (is_other_directory(path, last) && !(is_plain && has_plain)) {
      paths[n++] = path;
      has_plain = has_plain || is_plain;
    }
    last = path;
  }
  return n;
}

hf_status discover_columns(discovery *d) {
  buf sql = {0};
  const char **paths = discover_paths(d);
  if (paths == NULL) {
    return discover_out_of_memory(d);
  }
  size_t n_chosen = choose_files(d, paths);
  buf_text(&sql, "SELECT * FROM ");
  discover_call(d, paths, n_chosen, CALL_AS_REQUESTED, &sql);
  discover_hive_options(d, false, &sql);
  buf_char(&sql, ')');
  hf_status status = sql.failed ? discover_out_of_memory(d)
                                : engine_describe(d->engine, buf_cstr(&sql), d->arena, &d->columns, d->error);
  buf_reset(&sql);
  HF_TRY(name_the_file(d, status));
  d->n_file_columns = count_file_columns(d);
  return HF_OK;
}

/* ---------------------------------------------------------------- checking */

static bool first_rows(const discovery *d, const char *call, arena *a, text_table *out) {
  buf sql = {0};
  buf_printf(&sql, "SELECT * FROM %s LIMIT %d", call, COMPARED_ROWS);
  bool is_read = !sql.failed && engine_query_text(d->engine, buf_cstr(&sql), a, out, NULL) == HF_OK;
  buf_reset(&sql);
  return is_read;
}

static bool tables_equal(const text_table *a, const text_table *b) {
  bool equal = a->n_columns == b->n_columns && a->n_rows == b->n_rows;
  for (size_t i = 0; equal && i < a->n_columns; i++) {
    equal = strcmp(a->names[i], b->names[i]) == 0;
  }
  for (size_t i = 0; equal && i < a->n_columns * a->n_rows; i++) {
    const char *x = a->cells[i], *y = b->cells[i];
    equal = x == NULL || y == NULL ? x == y : strcmp(x, y) == 0;
  }
  return equal;
}

bool discover_calls_agree(const discovery *d, const char *first, const char *second) {
  if (d->files->n_files > LONGEST_COMPARED_LIST) {
    return true;
  }
  arena *a = arena_new();
  schema columns = {0};
  text_table x = {0}, y = {0};
  buf sql = {0};
  buf_printf(&sql, "SELECT * FROM %s", second);
  bool agree = a != NULL && !sql.failed &&
               engine_describe(d->engine, buf_cstr(&sql), a, &columns, NULL) == HF_OK &&
               schema_equal(&columns, &d->columns);
  if (agree && first_rows(d, first, a, &x)) {
    agree = first_rows(d, second, a, &y) && tables_equal(&x, &y);
  } /* else the rows are bad: the query that reads them says so */
  buf_reset(&sql);
  arena_free(a);
  return agree;
}

/* -------------------------------------------------------------------- rows */

static bool is_compressed(const discovery *d) {
  const char *path = d->files->files[0].path;
  size_t length = strlen(path);
  return option_value(d->request, "compression") != NULL ||
         (length > 3 && strcasecmp(path + length - 3, ".gz") == 0) ||
         (length > 4 && strcasecmp(path + length - 4, ".zst") == 0);
}

uint64_t discover_rows_by_lines(const discovery *d) {
  enum { BYTES_A_ROW = 100, COMPRESSION = 5 };
  char sample[SAMPLE_BYTES];
  int fd = open(d->files->files[0].path, O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : read(fd, sample, sizeof sample);
  if (fd >= 0) {
    close(fd);
  }
  if (got <= 0 || is_compressed(d)) {
    return d->files->bytes * COMPRESSION / BYTES_A_ROW + 1;
  }
  uint64_t lines = 0;
  for (ssize_t i = 0; i < got; i++) {
    lines += sample[i] == '\n';
  }
  return lines == 0 ? d->files->bytes / BYTES_A_ROW + 1 : d->files->bytes * lines / (uint64_t)got + 1;
}

/* -------------------------------------------------------------------- door */

hf_status discover(discovery *d) {
  static hf_status (*const formats[])(discovery *) = {discover_parquet, discover_csv, discover_json};
  HF_TRY(discover_columns(d));
  if (d->columns.n_columns == 0) {
    return error_set(d->error, HF_E_FILE_FORMAT, "no column was found in %s", d->files->written[0]);
  }
  HF_TRY(name_the_file(d, formats[d->request->format](d)));
  return d->reader.failed ? discover_out_of_memory(d) : HF_OK;
}
