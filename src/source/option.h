/* SPDX-License-Identifier: Apache-2.0 */
/* Reader options: which there are, what values they take, and who acts on them. Thread: any. */
#ifndef HF_SOURCE_OPTION_H
#define HF_SOURCE_OPTION_H

#include "source/source.h"

typedef enum option_role {
  OPTION_READ,   /* goes into the reader's call as it is */
  OPTION_DETECT, /* steers detection; the call spells out what was detected */
  OPTION_FILES   /* about the list of files: filename, hive partitions, union_by_name */
} option_role;

/* The role of a known option. */
option_role option_role_of(source_format format, const char *name);
/* The SQL of an option's value, or NULL when the request has none of that name. */
const char *option_value(const source_request *request, const char *name);
/* Whether it is there and true. */
bool option_is_true(const source_request *request, const char *name);

#endif
