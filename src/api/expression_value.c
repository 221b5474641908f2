/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expressions that have no parts: columns and constants. Their text is the same
 * whatever the locale of the program.
 * Thread: any.
 */
#include "api/expression.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------- columns */

hf_expr *hf_expr_column(const char *name) {
  making m = {0};
  making_name(&m, "name", name);
  return making_end(&m, EXPRESSION_VALUE);
}

hf_expr *hf_expr_column_of(const char *alias, const char *name) {
  making m = {0};
  making_name(&m, "alias", alias);
  making_text(&m, ".");
  making_name(&m, "name", name);
  return making_end(&m, EXPRESSION_VALUE);
}

hf_expr *hf_expr_sql(const char *text) {
  making m = {0};
  making_sql(&m, "text", text);
  return making_end(&m, EXPRESSION_VALUE);
}

/* ------------------------------------------------------------------ constants */

hf_expr *hf_expr_int64(int64_t value) {
  making m = {0};
  char text[48];
  if (value == INT64_MIN) { /* its digits alone would be a HUGEINT */
    snprintf(text, sizeof text, "CAST('%" PRId64 "' AS BIGINT)", value);
  } else {
    snprintf(text, sizeof text, value < 0 ? "(%" PRId64 ")" : "%" PRId64, value);
  }
  making_text(&m, text);
  return making_end(&m, EXPRESSION_VALUE);
}

/* The shortest digits that stand for this value; any locale's decimal separator becomes a point. */
static void number_text(double value, char *out, size_t bytes) {
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(out, bytes, "%.*g", digits, value);
    if (strtod(out, NULL) == value) {
      break;
    }
  }
  char *from = out, *to = out;
  for (; *from != '\0'; from++) {
    bool plain = strchr("0123456789+-e", *from) != NULL;
    if (plain) {
      *to++ = *from;
    } else if (to == out || to[-1] != '.') { /* a separator may have several bytes */
      *to++ = '.';
    }
  }
  *to = '\0';
}

hf_expr *hf_expr_double(double value) {
  making m = {0};
  char text[64];
  if (isnan(value)) {
    making_text(&m, "CAST('nan' AS DOUBLE)");
  } else if (isinf(value)) {
    making_text(&m, value < 0 ? "CAST('-inf' AS DOUBLE)" : "CAST('inf' AS DOUBLE)");
  } else {
    number_text(value, text, sizeof text);
    making_text(&m, "CAST('"); /* digits alone would be a DECIMAL */
    making_text(&m, text);
    making_text(&m, "' AS DOUBLE)");
  }
  return making_end(&m, EXPRESSION_VALUE);
}

hf_expr *hf_expr_bool(bool value) {
  making m = {0};
  making_text(&m, value ? "TRUE" : "FALSE");
  return making_end(&m, EXPRESSION_VALUE);
}

hf_expr *hf_expr_string(const char *text) {
  making m = {0};
  making_string(&m, "text", text);
  return making_end(&m, EXPRESSION_VALUE);
}

hf_expr *hf_expr_null(void) {
  making m = {0};
  making_text(&m, "NULL");
  return making_end(&m, EXPRESSION_VALUE);
}

hf_expr *hf_expr_typed(const char *type, const char *text) {
  making m = {0};
  making_text(&m, "CAST(");
  making_string(&m, "text", text);
  making_text(&m, " AS ");
  making_type(&m, type);
  making_text(&m, ")");
  return making_end(&m, EXPRESSION_VALUE);
}
