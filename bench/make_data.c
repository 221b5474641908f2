/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the TPC-H tables as Parquet files with DuckDB's generator. Usage: make_data DIR SCALE */
#include "support/rival.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  if (argc != 3) {
    bench_fail("usage", "make_data DIR SCALE");
  }
  static const char *const tables[] = {"customer", "lineitem", "nation", "orders",
                                       "part",     "partsupp", "region", "supplier"};
  rival r;
  rival_open(&r, 2);
  char sql[1024];
  rival_run(&r, "LOAD tpch", NULL);
  snprintf(sql, sizeof sql, "CALL dbgen(sf = %g)", strtod(argv[2], NULL));
  rival_run(&r, sql, NULL);
  for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
    snprintf(sql, sizeof sql, "COPY %s TO '%s/%s.parquet' (FORMAT parquet)", tables[i], argv[1], tables[i]);
    rival_run(&r, sql, NULL);
  }
  rival_close(&r);
  return 0;
}
