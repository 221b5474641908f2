/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defects of DuckDB itself that show in the answers of single-node DuckDB, and a
 * second look without them. A row tells how one shows and by which setting DuckDB
 * leaves it out; what a row is right about was shown with DuckDB alone
 * (docs/verify.md has the statements, tests/unit/witness runs them).
 * Thread: one at a time.
 */
#include "witness.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  const char *message;             /* part of the error that it shows as; NULL: as other rows */
  const char *scan;                /* part of the plan's text that it takes; NULL: none */
  const char *type;                /* that something of the plan must have; NULL: any */
  const char *leave_out, *restore; /* statements */
} defects[] = {
    /* ParquetStatisticsUtils looks a constant up in a row group's Bloom filter by the hash of its text: of a BLOB the
     * escaped one, which is not what was written. Constants of WHERE and those that a join finds at run time. */
    {"the Bloom filter of a Parquet file does not know a BLOB", NULL, "PARQUET", "BLOB",
     "SET disabled_optimizers = 'filter_pushdown,join_filter_pushdown'", "SET disabled_optimizers = ''"},
    /* ExpressionExecutor::Select knows no nested type; filters make a BETWEEN of two comparisons. */
    {"a filter cannot compute BETWEEN of nested values", "Invalid type for BETWEEN", NULL, NULL,
     "SET disabled_optimizers = 'filter_pushdown'", "SET disabled_optimizers = ''"},
    /* ParquetReader loses its place where a condition on a nested column leaves out rows while others are read. */
    {"the Parquet reader loses its place below a condition on a nested column", "out of buffer", NULL, NULL,
     "SET disabled_optimizers = 'filter_pushdown,join_filter_pushdown'", "SET disabled_optimizers = ''"},
    /* PhysicalAsOfJoin sorts a NULL of the inequality behind all values, where it matches; a loop over the rows does not. */
    {"an ASOF join takes a NULL of its inequality for a value", NULL, "ASOF_JOIN", NULL,
     "SET GLOBAL asof_loop_join_threshold = 1000000000000", "RESET GLOBAL asof_loop_join_threshold"},
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

hf_status witness_look_again(witness *w, const char *sql, const hf_error *failed, const char **defect,
                             struct ArrowArrayStream *out, hf_error *error) {
  size_t found = find(w, sql, failed);
  *defect = found == NO_DEFECT ? NULL : defects[found].name;
  if (*defect == NULL) {
    return HF_OK;
  }
  HF_TRY(engine_execute(witness_engine(w), defects[found].leave_out, error));
  hf_status status = witness_run(w, sql, out, error);
  hf_status restored =
      engine_execute(witness_engine(w), defects[found].restore, status == HF_OK ? error : NULL);
  if (status == HF_OK && restored != HF_OK) {
    out->release(out);
    return restored;
  }
  return status;
}
