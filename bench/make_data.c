/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the tables of a suite as Parquet files with DuckDB's generator. Usage: make_data tpch|tpcds DIR SCALE */
#include "support/suite.h"

int main(int argc, char **argv) {
  if (argc != 4) {
    bench_fail("usage", "make_data tpch|tpcds DIR SCALE");
  }
  rival r;
  bench_suite s;
  rival_open(&r, 2);
  bench_suite_open(&s, &r, argv[1], argv[2], argv[3]);
  bench_suite_close(&s);
  rival_close(&r);
  return 0;
}
