/* SPDX-License-Identifier: Apache-2.0 */
/* What the oracle's two files share. */
#ifndef HF_TESTS_ORACLE_INTERNAL_H
#define HF_TESTS_ORACLE_INTERNAL_H

#include "support/oracle.h"

#include <duckdb.h>

/* Reads the whole result; false when it has more rows than `most`. */
bool oracle_read(duckdb_result *result, size_t most, oracle_rows *out);

#endif
