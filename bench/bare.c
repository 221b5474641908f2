/* SPDX-License-Identifier: Apache-2.0 */
/* The least program over libduckdb: opens an instance, runs `select 1`, ends. The rival of `holdfast sql -c`. */
#include <duckdb.h>
#include <stdio.h>

int main(void) {
  duckdb_database database;
  duckdb_connection connection;
  duckdb_result result;
  if (duckdb_open(NULL, &database) != DuckDBSuccess ||
      duckdb_connect(database, &connection) != DuckDBSuccess ||
      duckdb_query(connection, "select 1", &result) != DuckDBSuccess) {
    return 1;
  }
  char *text = duckdb_value_varchar(&result, 0, 0);
  printf("%s\n", text);
  duckdb_free(text);
  duckdb_destroy_result(&result);
  duckdb_disconnect(&connection);
  duckdb_close(&database);
  return 0;
}
