/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of what was cut, by reason. */
#include "corpus/slt_share.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

enum { REASON_BYTES = 120, MOST_REASONS = 500 };

static const char *const sentences[] = {
    [SLT_SHARE_NONE] = "read no table",
    [SLT_SHARE_CUT] = "cut",
    [SLT_SHARE_PLACED] = "cut, with a part in one task by the table of placements",
    [SLT_SHARE_PART] = "cut in part: a subtree falls back to one task",
    [SLT_SHARE_WHOLE] = "one task runs all of it",
    [SLT_SHARE_NOT] = "not planned as stages",
};
enum { N_SHARES = sizeof sentences / sizeof sentences[0] };

static unsigned long counts[N_SHARES];
static struct reason {
  slt_share share;
  char text[REASON_BYTES];
  unsigned long n;
} reasons[MOST_REASONS];
static size_t n_reasons;

/* A plan that cannot be made is of a query that reads: so it is counted against us. */
bool slt_share_reads(oracle *o, const char *sql) {
  static const char *const scans[] = {"SEQ_SCAN", "INDEX_SCAN", "TABLE_SCAN", "READ_", "PARQUET_SCAN"};
  oracle_rows rows;
  buf text = {0};
  bool found = false;
  buf_printf(&text, "EXPLAIN (FORMAT json) %s", sql);
  char *error = oracle_query(o, buf_cstr(&text), 10, &rows);
  for (size_t i = 0; error == NULL && i < rows.n_rows * rows.n_columns; i++) {
    for (size_t k = 0; !found && rows.cells[i].text != NULL && k < sizeof scans / sizeof scans[0]; k++) {
      buf name = {0};
      buf_printf(&name, "\"name\": \"%s", scans[k]);
      found = strstr(rows.cells[i].text, buf_cstr(&name)) != NULL;
      buf_reset(&name);
    }
  }
  found |= error != NULL;
  if (error != NULL) {
    free(oracle_run(o, "ROLLBACK"));
  }
  oracle_rows_free(&rows);
  buf_reset(&text);
  free(error);
  return found;
}

slt_share slt_share_of(const cut_outcome *out, bool ran) {
  /* a scan that this runner could not make a source */
  bool is_unsplit = strcmp(out->why, "seq_scan()") == 0;
  if (!ran || out->problem[0] != '\0') {
    return SLT_SHARE_NOT;
  }
  if (!out->is_wide) {
    return SLT_SHARE_WHOLE;
  }
  if (out->falls_back || is_unsplit) {
    return SLT_SHARE_PART;
  }
  return out->why[0] == '\0' ? SLT_SHARE_CUT : SLT_SHARE_PLACED;
}

void slt_share_count(slt_share share, const char *why) {
  counts[share]++;
  if (share == SLT_SHARE_NONE || share == SLT_SHARE_CUT) {
    return;
  }
  for (size_t i = 0; i < n_reasons; i++) {
    if (reasons[i].share == share && strncmp(reasons[i].text, why, REASON_BYTES - 1) == 0) {
      reasons[i].n++;
      return;
    }
  }
  if (n_reasons < MOST_REASONS) {
    reasons[n_reasons].share = share;
    reasons[n_reasons].n = 1;
    snprintf(reasons[n_reasons++].text, REASON_BYTES, "%s", why);
  }
}

static int compare_reasons(const void *left, const void *right) {
  const struct reason *a = left, *b = right;
  if (a->share != b->share) {
    return a->share < b->share ? -1 : 1;
  }
  return a->n > b->n ? -1 : a->n < b->n;
}

bool slt_share_print(FILE *to, double least) {
  unsigned long n = 0, good = counts[SLT_SHARE_CUT] + counts[SLT_SHARE_PLACED];
  qsort(reasons, n_reasons, sizeof reasons[0], compare_reasons);
  for (size_t i = 0, at = 0; i < N_SHARES; i++) {
    fprintf(to, "%6lu %s\n", counts[i], sentences[i]);
    n += i == SLT_SHARE_NONE ? 0 : counts[i];
    for (; at < n_reasons && reasons[at].share == (slt_share)i; at++) {
      fprintf(to, "         %6lu %s\n", reasons[at].n, reasons[at].text);
    }
  }
  double share = n == 0 ? 0 : 100.0 * (double)good / (double)n;
  bool is_enough = share >= least;
  fprintf(to, "%s: %.2f %% of %lu SELECTs that read a table are cut without a fallback, at least %.2f %%\n",
          is_enough ? "enough" : "TOO FEW", share, n, least);
  return is_enough;
}
