/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defects of DuckDB itself that show in the answers of single-node DuckDB, and a
 * second look without them. A row tells how one shows and which of DuckDB's
 * optimizer rules to leave out; what a row is right about was shown with DuckDB alone
 * (docs/verify.md has the statements, tests/unit/witness runs them).
 * Thread: one at a time.
 */
#include "witness.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  const char *message; /* part of the error that it shows as; NULL: as other rows */
  const char *scan;    /* part of the plan's text that it takes; NULL: none */
  const char *type;    /* that something of the plan must have; NULL: any */
  const char *without; /* rules, as disabled_optimizers has them */
} defects[] = {
    /* ParquetStatisticsUtils looks a constant up in a row group's Bloom filter by the hash of its text: of a BLOB the
     * escaped one, which is not what was written. Constants of WHERE and those that a join finds at run time. */
    {"the Bloom filter of a Parquet file does not know a BLOB", NULL, "PARQUET", "BLOB",
     "filter_pushdown,join_filter_pushdown"},
    /* ExpressionExecutor::Select knows no nested type; filters make a BETWEEN of two comparisons. */
    {"a filter cannot compute BETWEEN of nested values", "Invalid type for BETWEEN", NULL, NULL,
     "filter_pushdown"},
};

enum { DEFECTS = sizeof defects / sizeof defects[0], NO_DEFECT = DEFECTS };

/* One that cannot be serialised may have it. Serialising takes DuckDB's rules for planning; EXPLAIN is without them again. */
static bool plan_has_type(witness *w, const char *sql, const char *type) {
  arena *a = arena_new();
  const char *plan = NULL, *why = NULL, *unused = NULL;
  char quoted[40];
  snprintf(quoted, sizeof quoted, "\"%s\"", type);
  bool has = a != NULL && engine_plan_json(witness_engine(w), sql, a, &plan, &why, NULL) == HF_OK &&
             (plan == NULL || strstr(plan, quoted) != NULL);
  has = a != NULL && engine_explain(witness_engine(w), "SELECT 1", a, &unused, NULL) == HF_OK && has;
  arena_free(a);
  return has;
}

static bool plan_has(witness *w, const char *sql, const char *scan) {
  arena *a = arena_new();
  const char *text = NULL;
  bool has = a != NULL && engine_explain(witness_engine(w), sql, a, &text, NULL) == HF_OK &&
             strstr(text, scan) != NULL;
  arena_free(a);
  return has;
}

static size_t find(witness *w, const char *sql, const hf_error *failed) {
  const char *message = failed == NULL || failed->message == NULL ? "" : failed->message;
  for (size_t i = 0; i < DEFECTS; i++) {
    bool shows = defects[i].message == NULL ? failed == NULL : strstr(message, defects[i].message) != NULL;
    if (shows && (defects[i].scan == NULL || plan_has(w, sql, defects[i].scan)) &&
        (defects[i].type == NULL || plan_has_type(w, sql, defects[i].type))) {
      return i;
    }
  }
  return NO_DEFECT;
}

static hf_status leave_out(witness *w, const char *rules, hf_error *error) {
  buf sql = {0};
  buf_printf(&sql, "SET disabled_optimizers = '%s'", rules);
  hf_status status = sql.failed ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the single-node answer")
                                : engine_execute(witness_engine(w), buf_cstr(&sql), error);
  buf_reset(&sql);
  return status;
}

hf_status witness_look_again(witness *w, const char *sql, const hf_error *failed, const char **defect,
                             struct ArrowArrayStream *out, hf_error *error) {
  size_t found = find(w, sql, failed);
  *defect = found == NO_DEFECT ? NULL : defects[found].name;
  if (*defect == NULL) {
    return HF_OK;
  }
  HF_TRY(leave_out(w, defects[found].without, error));
  hf_status status = witness_run(w, sql, out, error);
  hf_status restored = leave_out(w, "", status == HF_OK ? error : NULL);
  if (status == HF_OK && restored != HF_OK) {
    out->release(out);
    return restored;
  }
  return status;
}
