/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader options that are accepted, a row each. Left out on purpose: those
 * that write tables (store_rejects), name keys (encryption_config) or lie to the
 * optimiser (explicit_cardinality).
 */
#include "source/option.h"

#include "base/nearest.h"

#include <string.h>
#include <strings.h>

typedef enum option_type {
  TYPE_TRUTH,
  TYPE_COUNT,
  TYPE_TEXT,
  TYPE_LITERAL,
  TYPE_TEXT_OR_LITERAL
} option_type;

enum {
  PARQUET = 1 << SOURCE_PARQUET,
  CSV = 1 << SOURCE_CSV,
  JSON = 1 << SOURCE_JSON,
  ALL = PARQUET | CSV | JSON
};

typedef struct option_row {
  const char *name;
  unsigned formats;
  option_type type;
  option_role role;
} option_row;

static const option_row OPTIONS[] = {
    {"all_varchar", CSV, TYPE_TRUTH, OPTION_DETECT},
    {"allow_quoted_nulls", CSV, TYPE_TRUTH, OPTION_READ},
    {"auto_detect", CSV | JSON, TYPE_TRUTH, OPTION_DETECT},
    {"auto_type_candidates", CSV, TYPE_LITERAL, OPTION_DETECT},
    {"binary_as_string", PARQUET, TYPE_TRUTH, OPTION_READ},
    {"buffer_size", CSV, TYPE_COUNT, OPTION_READ},
    {"can_have_nan", PARQUET, TYPE_TRUTH, OPTION_READ},
    {"column_names", CSV, TYPE_LITERAL, OPTION_DETECT},
    {"column_types", CSV, TYPE_LITERAL, OPTION_DETECT},
    {"columns", CSV | JSON, TYPE_LITERAL, OPTION_DETECT},
    {"comment", CSV, TYPE_TEXT, OPTION_DETECT},
    {"compression", CSV | JSON, TYPE_TEXT, OPTION_READ},
    {"convert_strings_to_integers", JSON, TYPE_TRUTH, OPTION_DETECT},
    {"date_format", JSON, TYPE_TEXT, OPTION_DETECT},
    {"dateformat", CSV | JSON, TYPE_TEXT, OPTION_DETECT},
    {"decimal_separator", CSV, TYPE_TEXT, OPTION_READ},
    {"delim", CSV, TYPE_TEXT, OPTION_DETECT},
    {"dtypes", CSV, TYPE_LITERAL, OPTION_DETECT},
    {"encoding", CSV, TYPE_TEXT, OPTION_READ},
    {"escape", CSV, TYPE_TEXT, OPTION_DETECT},
    {"field_appearance_threshold", JSON, TYPE_COUNT, OPTION_DETECT},
    {"file_row_number", PARQUET, TYPE_TRUTH, OPTION_READ},
    {"filename", ALL, TYPE_TRUTH, OPTION_FILES},
    {"files_to_sniff", CSV, TYPE_COUNT, OPTION_DETECT},
    {"force_not_null", CSV, TYPE_LITERAL, OPTION_READ},
    {"format", JSON, TYPE_TEXT, OPTION_READ},
    {"header", CSV, TYPE_TRUTH, OPTION_DETECT},
    {"hive_partitioning", ALL, TYPE_TRUTH, OPTION_FILES},
    {"hive_types", ALL, TYPE_LITERAL, OPTION_FILES},
    {"hive_types_autocast", ALL, TYPE_TRUTH, OPTION_FILES},
    {"ignore_errors", CSV | JSON, TYPE_TRUTH, OPTION_READ},
    {"map_inference_threshold", JSON, TYPE_COUNT, OPTION_DETECT},
    {"max_line_size", CSV, TYPE_TEXT, OPTION_READ},
    {"maximum_depth", JSON, TYPE_COUNT, OPTION_DETECT},
    {"maximum_line_size", CSV, TYPE_TEXT, OPTION_READ},
    {"maximum_object_size", JSON, TYPE_COUNT, OPTION_READ},
    {"maximum_sample_files", JSON, TYPE_COUNT, OPTION_DETECT},
    {"names", CSV, TYPE_LITERAL, OPTION_DETECT},
    {"new_line", CSV, TYPE_TEXT, OPTION_DETECT},
    {"normalize_names", CSV, TYPE_TRUTH, OPTION_DETECT},
    {"null_padding", CSV, TYPE_TRUTH, OPTION_READ},
    {"nullstr", CSV, TYPE_TEXT_OR_LITERAL, OPTION_READ},
    {"parallel", CSV, TYPE_TRUTH, OPTION_READ},
    {"quote", CSV, TYPE_TEXT, OPTION_DETECT},
    {"records", JSON, TYPE_TEXT, OPTION_DETECT},
    {"sample_size", CSV | JSON, TYPE_COUNT, OPTION_DETECT},
    {"sep", CSV, TYPE_TEXT, OPTION_DETECT},
    {"skip", CSV, TYPE_COUNT, OPTION_DETECT},
    {"strict_mode", CSV, TYPE_TRUTH, OPTION_READ},
    {"thousands", CSV, TYPE_TEXT, OPTION_READ},
    {"timestamp_format", JSON, TYPE_TEXT, OPTION_DETECT},
    {"timestampformat", CSV | JSON, TYPE_TEXT, OPTION_DETECT},
    {"types", CSV, TYPE_LITERAL, OPTION_DETECT},
    {"union_by_name", ALL, TYPE_TRUTH, OPTION_FILES},
};
enum { N_OPTIONS = sizeof OPTIONS / sizeof OPTIONS[0] };

static const char *format_name(source_format format) {
  static const char *const names[] = {"parquet", "csv", "json"};
  return names[format];
}

static const option_row *row_find(source_format format, const char *name) {
  for (size_t i = 0; i < N_OPTIONS; i++) {
    if ((OPTIONS[i].formats & (1U << format)) != 0 && strcasecmp(OPTIONS[i].name, name) == 0) {
      return &OPTIONS[i];
    }
  }
  return NULL;
}

hf_status source_option_check(source_format format, const char *name, hf_error *error) {
  if (row_find(format, name) != NULL) {
    return HF_OK;
  }
  nearest near = nearest_to(name);
  for (size_t i = 0; i < N_OPTIONS; i++) {
    if ((OPTIONS[i].formats & (1U << format)) != 0) {
      nearest_offer(&near, OPTIONS[i].name);
    }
  }
  error_set(error, HF_E_INVALID_ARGUMENT, "the %s reader has no option of this name: %.100s",
            format_name(format), name);
  if (near.best != NULL) {
    error_hint(error, "did you mean %s?", near.best);
  } else {
    error_hint(error, "options are those of the DuckDB reader, but for those that write tables or name keys");
  }
  return HF_E_INVALID_ARGUMENT;
}

/* ---------------------------------------------------------------- from text */

static bool is_truth(const char *text) {
  return strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0;
}

static bool is_number(const char *text) {
  size_t start = *text == '-' ? 1 : 0;
  size_t length = strspn(text + start, "0123456789.");
  return length > 0 && text[start + length] == '\0';
}

/* Length of the quoted text that starts at `text`, or 0 when it has no end. */
static size_t quoted_length(const char *text) {
  for (size_t i = 1; text[i] != '\0'; i++) {
    if (text[i] == text[0]) {
      if (text[i + 1] != text[0]) {
        return i + 1;
      }
      i++;
    }
  }
  return 0;
}

/* A list or struct of constants. Without parentheses and operators it can call nothing. */
static bool is_literal(const char *text) {
  char open[32];
  size_t depth = 0;
  if (*text != '[' && *text != '{') {
    return false;
  }
  for (const char *c = text; *c != '\0'; c++) {
    if (*c == '\'' || *c == '"') {
      size_t length = quoted_length(c);
      if (length == 0) {
        return false;
      }
      c += length - 1;
    } else if (*c == '[' || *c == '{') {
      if (depth == sizeof open) {
        return false;
      }
      open[depth++] = *c == '[' ? ']' : '}';
    } else if (*c == ']' || *c == '}') {
      if (depth == 0 || open[--depth] != *c) {
        return false;
      }
    } else if (depth == 0 || strchr(" ,:._-+", *c) == NULL) {
      bool is_word = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
      if (depth == 0 || !is_word) {
        return false;
      }
    }
  }
  return depth == 0 && strstr(text, "--") == NULL;
}

static hf_status spell_text(const char *text, arena *a, const char **out, hf_error *error) {
  buf quoted = {0};
  buf_sql_string(&quoted, text);
  *out = quoted.failed ? NULL : arena_strdup(a, buf_cstr(&quoted));
  buf_reset(&quoted);
  return *out == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a reader option") : HF_OK;
}

hf_status source_option_from_text(source_format format, const char *name, const char *text, arena *a,
                                  const char **value_sql, hf_error *error) {
  static const char *const expected[] = {
      [TYPE_TRUTH] = "true or false",
      [TYPE_COUNT] = "a number",
      [TYPE_TEXT] = "text",
      [TYPE_LITERAL] = "a list or struct of constants such as ['a', 'b'] or {'a': 'INTEGER'}",
      [TYPE_TEXT_OR_LITERAL] = "text or a list",
  };
  HF_TRY(source_option_check(format, name, error));
  option_type type = row_find(format, name)->type;
  bool is_plain = (type == TYPE_TRUTH && is_truth(text)) || (type == TYPE_COUNT && is_number(text)) ||
                  ((type == TYPE_LITERAL || type == TYPE_TEXT_OR_LITERAL) && is_literal(text));
  if (!is_plain && (type == TYPE_TEXT || type == TYPE_TEXT_OR_LITERAL)) {
    return spell_text(text, a, value_sql, error);
  }
  if (!is_plain) {
    return error_set(error, HF_E_INVALID_ARGUMENT, "the option %s takes %s, found: %.100s", name,
                     expected[type], text);
  }
  *value_sql = arena_strdup(a, text);
  return *value_sql == NULL ? error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a reader option") : HF_OK;
}

/* -------------------------------------------------------------- in a request */

option_role option_role_of(source_format format, const char *name) {
  const option_row *row = row_find(format, name);
  return row == NULL ? OPTION_DETECT : row->role;
}

const char *option_value(const source_request *request, const char *name) {
  for (size_t i = 0; i < request->n_options; i++) {
    if (strcasecmp(request->options[i].name, name) == 0) {
      return request->options[i].value_sql;
    }
  }
  return NULL;
}

bool option_is_true(const source_request *request, const char *name) {
  const char *value = option_value(request, name);
  return value != NULL && (strcasecmp(value, "true") == 0 || strcmp(value, "1") == 0 ||
                           strcasecmp(value, "CAST('t' AS BOOLEAN)") == 0);
}
