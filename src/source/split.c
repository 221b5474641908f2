/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splitting a source among tasks: ranges of rows of Parquet files, or whole
 * files, in the source's order. Row groups are asked of the footers when a split
 * needs them, once a source.
 * Thread: any; the catalogue's turn guards what is remembered.
 */
#include "source/source_internal.h"

#include "base/fault.h"
#include "source/reader.h"

#include <stdlib.h>
#include <string.h>

/* Whole files are dealt out when there are as many for each share. */
enum { FILES_A_SHARE = 4 };

static hf_status no_memory(hf_error *error) {
  return error_set(error, HF_E_OUT_OF_MEMORY, "no memory to split a source");
}

bool source_can_split(const source *s) {
  return s->n_files > 1 || reader_can_cut(s->reader);
}

/* --------------------------------------------------------------- row groups */

/* Reads "122880,122880,7". */
static hf_status parse_groups(const char *text, arena *a, source_groups *out, hf_error *error) {
  size_t n = 1;
  for (const char *c = text; *c != '\0'; c++) {
    n += *c == ',' ? 1 : 0;
  }
  uint64_t *rows = arena_array(a, n, sizeof *rows);
  if (rows == NULL) {
    return no_memory(error);
  }
  char *rest = (char *)text;
  for (size_t i = 0; i < n; i++) {
    rows[i] = strtoull(rest, &rest, 10);
    rest += *rest == ',' ? 1 : 0;
  }
  *out = (source_groups){n - (n > 1 && FAULT("source.last_row_group") ? 1 : 0), rows};
  return HF_OK;
}

static hf_status ask_footers(source_catalog *c, const source *s, arena *a, text_table *out, hf_error *error) {
  const char **paths = arena_array(a, s->n_files, sizeof *paths);
  if (paths == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < s->n_files; i++) {
    paths[i] = s->files[i].path;
  }
  buf sql = {0};
  buf_text(&sql, "SELECT file_name, string_agg(row_group_num_rows, ',' ORDER BY row_group_id) FROM "
                 "parquet_metadata(");
  reader_file_list(paths, s->n_files, &sql);
  buf_text(&sql, ") WHERE column_id = 0 GROUP BY file_name");
  hf_status status =
      sql.failed ? no_memory(error) : engine_query_text(c->engine, buf_cstr(&sql), a, out, error);
  buf_reset(&sql);
  return status;
}

/* Files without rows have no groups, and no row in the answer. */
static hf_status take_footers(source *s, const text_table *footers, hf_error *error) {
  source_groups *groups = arena_array(s->arena, s->n_files, sizeof *groups);
  if (groups == NULL) {
    return no_memory(error);
  }
  for (size_t i = 0; i < s->n_files; i++) {
    for (size_t k = 0; k < footers->n_rows; k++) {
      const char *const *cells = footers->cells + 2 * k;
      if (cells[0] != NULL && cells[1] != NULL && strcmp(cells[0], s->files[i].path) == 0) {
        HF_TRY(parse_groups(cells[1], s->arena, &groups[i], error));
      }
    }
  }
  s->groups = groups;
  return HF_OK;
}

static hf_status read_groups(source_catalog *c, source *s, arena *a, hf_error *error) {
  pthread_mutex_lock(&c->turn);
  hf_status status = s->groups != NULL ? HF_OK : catalog_open_engine(c, error);
  if (status == HF_OK && s->groups == NULL) {
    text_table footers = {0};
    status = ask_footers(c, s, a, &footers, error);
    if (status == HF_OK) {
      status = take_footers(s, &footers, error);
    }
  }
  pthread_mutex_unlock(&c->turn);
  return status;
}

/* -------------------------------------------------------------------- ranges */

static uint64_t rows_of(const source_groups *groups) {
  uint64_t rows = 0;
  for (size_t i = 0; i < groups->n; i++) {
    rows += groups->rows[i];
  }
  return rows;
}

/* The border between two row groups, counted over these files, that is nearest to `row`. */
static uint64_t nearest_border(const source_groups *files, size_t n_files, uint64_t row) {
  uint64_t at = 0;
  for (size_t i = 0; i < n_files; i++) {
    for (size_t k = 0; k < files[i].n; k++) {
      uint64_t next = at + files[i].rows[k];
      if (next >= row) {
        return row - at < next - row ? at : next;
      }
      at = next;
    }
  }
  return at;
}

/* Where share `t` of `n` of these files begins: at a border that is near, else where shares are equal. */
static uint64_t share_begin(const source_groups *files, size_t n_files, size_t t, size_t n) {
  uint64_t total = 0;
  for (size_t i = 0; i < n_files; i++) {
    total += rows_of(&files[i]);
  }
  uint64_t share = total / n, equal = share * t + total % n * t / n;
  if (t == 0 || t == n) {
    return t == 0 ? 0 : total;
  }
  uint64_t border = nearest_border(files, n_files, equal);
  uint64_t distance = border > equal ? border - equal : equal - border;
  return distance <= share / 4 ? border : equal;
}

/* How many rows a part has that ends before row `end` of a file of `rows`. */
static uint64_t count_of(uint64_t first, uint64_t end, uint64_t rows) {
  if (end == rows && !FAULT("source.last_row_group")) {
    return first == 0 ? 0 : SOURCE_END - first;
  }
  return end - first;
}

/* The parts of files that rows from `begin` to `end`, counted over all files, lie in. */
static hf_status cut_share(const source *s, uint64_t begin, uint64_t end, arena *a, source_share *out,
                           hf_error *error) {
  source_part *parts = arena_array(a, s->n_files, sizeof *parts);
  if (parts == NULL) {
    return no_memory(error);
  }
  *out = (source_share){0, parts};
  uint64_t at = 0;
  for (size_t i = 0; i < s->n_files; i++) {
    uint64_t rows = rows_of(&s->groups[i]), next = at + rows;
    uint64_t first = begin > at ? begin : at, last = end < next ? end : next;
    if (first < last) {
      double part = (double)(last - first) / (double)rows;
      parts[out->n_parts++] = (source_part){.path = s->files[i].path,
                                            .first = first - at,
                                            .count = count_of(first - at, last - at, rows),
                                            .bytes = (uint64_t)((double)s->files[i].bytes * part)};
    }
    at = next;
  }
  return HF_OK;
}

static hf_status split_rows(const source *s, size_t n, arena *a, source_share *out, hf_error *error) {
  for (size_t t = 0; t < n; t++) {
    uint64_t begin = share_begin(s->groups, s->n_files, t > 0 && FAULT("source.split_twice") ? t - 1 : t, n);
    uint64_t end = share_begin(s->groups, s->n_files, t + 1, n);
    HF_TRY(cut_share(s, begin, end, a, &out[t], error));
  }
  return HF_OK;
}

/* How many shares the next file with rows gets: at least one, and one is left for each of `n_after` others. */
static size_t shares_of_file(uint64_t rows, uint64_t rows_left, size_t shares_left, size_t n_after) {
  size_t most = shares_left - n_after;
  size_t wanted = (size_t)((double)rows / (double)rows_left * (double)shares_left + 0.5);
  return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

/* Fewer files than shares: each share lies in one file. */
static hf_status split_each_file(const source *s, size_t n, arena *a, source_share *out, hf_error *error) {
  uint64_t rows_left = 0, at = 0;
  size_t files_left = 0, t = 0;
  for (size_t i = 0; i < s->n_files; i++) {
    rows_left += rows_of(&s->groups[i]);
    files_left += rows_of(&s->groups[i]) > 0 ? 1 : 0;
  }
  memset(out, 0, n * sizeof *out);
  for (size_t i = 0; i < s->n_files; i++) {
    uint64_t rows = rows_of(&s->groups[i]);
    size_t k = rows == 0 ? 0 : shares_of_file(rows, rows_left, n - t, --files_left);
    for (size_t part = 0; part < k; part++) {
      uint64_t begin = at + share_begin(&s->groups[i], 1, part, k);
      uint64_t end = at + share_begin(&s->groups[i], 1, part + 1, k);
      HF_TRY(cut_share(s, begin, end, a, &out[t++], error));
    }
    at += rows;
    rows_left -= rows;
  }
  return HF_OK;
}

/* --------------------------------------------------------------- whole files */

/* A file goes to the share in which its middle lies, each counted as a byte more than it has. */
static size_t share_of_file(const source *s, size_t file, uint64_t before, size_t n) {
  double total = (double)s->bytes + (double)s->n_files;
  double middle = (double)before + (double)file + ((double)s->files[file].bytes + 1) / 2;
  size_t share = (size_t)(middle / total * (double)n);
  return share < n ? share : n - 1;
}

static hf_status split_files(const source *s, size_t n, arena *a, source_share *out, hf_error *error) {
  source_part *parts = arena_array(a, s->n_files, sizeof *parts);
  if (parts == NULL) {
    return no_memory(error);
  }
  memset(out, 0, n * sizeof *out);
  uint64_t before = 0;
  for (size_t i = 0; i < s->n_files; i++) {
    source_share *share = &out[share_of_file(s, i, before, n)];
    parts[i] = (source_part){.path = s->files[i].path, .bytes = s->files[i].bytes};
    share->parts = share->n_parts == 0 ? &parts[i] : share->parts;
    share->n_parts++;
    before += s->files[i].bytes;
  }
  return HF_OK;
}

hf_status source_split(source_catalog *c, source *s, const source_split_options *options, arena *a,
                       source_share *out, hf_error *error) {
  size_t n = options->n, most_files = options->in_order ? n : FILES_A_SHARE * n;
  if (n == 1 || !reader_can_cut(s->reader) || s->n_files >= most_files) {
    return split_files(s, n, a, out, error);
  }
  HF_TRY(read_groups(c, s, a, error));
  return options->in_order ? split_each_file(s, n, a, out, error) : split_rows(s, n, a, out, error);
}
