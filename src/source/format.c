/* SPDX-License-Identifier: Apache-2.0 */
/* The format of a file by its name, by the rules of DuckDB's replacement scans. */
#include "source/source.h"

#include <string.h>
#include <strings.h>

static bool ends_with(const char *text, size_t length, const char *ending) {
  size_t width = strlen(ending);
  return length >= width && strncasecmp(text + length - width, ending, width) == 0;
}

bool source_format_of_path(const char *path, source_format *out) {
  static const struct {
    const char *ending;
    source_format format;
  } endings[] = {
      {".parquet", SOURCE_PARQUET}, {".csv", SOURCE_CSV},    {".tsv", SOURCE_CSV},
      {".json", SOURCE_JSON},       {".jsonl", SOURCE_JSON}, {".ndjson", SOURCE_JSON},
  };
  size_t length = strlen(path);
  if (ends_with(path, length, ".gz")) {
    length -= 3;
  } else if (ends_with(path, length, ".zst")) {
    length -= 4;
  }
  for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
    if (ends_with(path, length, endings[i].ending)) {
      *out = endings[i].format;
      return true;
    }
  }
  return false;
}
