#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What user SQL may not do: statements, table functions and paths that are refused, each
# with its code, and without a trace on the disk.
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from command import Conversation, check, main, same  # noqa: E402

STATEMENTS = ["ATTACH 'x.db'", "ATTACH ':memory:' AS m", "DETACH x", "INSTALL httpfs", "FORCE INSTALL httpfs", "LOAD httpfs",
              "COPY (SELECT 1) TO 'out.csv'", "COPY t FROM 'in.csv'", "EXPORT DATABASE 'd'", "IMPORT DATABASE 'd'",
              "PRAGMA database_list", "PRAGMA memory_limit='1GB'", "CREATE TABLE t(i INTEGER)", "CREATE TABLE t AS SELECT 1",
              "CREATE MACRO f(x) AS x", "CREATE SEQUENCE s", "CREATE SECRET (TYPE s3)", "CREATE TYPE e AS ENUM ('x')",
              "CREATE SCHEMA s", "CREATE INDEX i ON t(i)", "INSERT INTO t VALUES (1)", "UPDATE t SET i = 1",
              "DELETE FROM t", "TRUNCATE t", "ALTER TABLE t ADD COLUMN j INTEGER", "DROP TABLE t", "USE x", "CALL pragma_version()",
              "BEGIN", "COMMIT", "ROLLBACK", "CHECKPOINT", "VACUUM", "ANALYZE", "PREPARE p AS SELECT 1", "EXECUTE p",
              "DEALLOCATE p", "COMMENT ON TABLE t IS 'x'", "MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE",
              "/* a */ -- b\n ATTACH 'x.db'"]

# Where a query is expected, another statement is no syntax.
INSIDE = ["EXPLAIN COPY (SELECT 1) TO 'out.csv'", "CREATE VIEW v AS COPY (SELECT 1) TO 'out.csv'", "CACHE TABLE c AS ATTACH 'x.db'",
          "SELECT * FROM (COPY (SELECT 1) TO 'out.csv')", "WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a"]

FUNCTIONS = ["query('SELECT 1')", "query_table('t')", "read_blob('f.csv')", "read_text('f.csv')", "glob('*')",
             "duckdb_settings()", "duckdb_secrets()", "duckdb_functions()", "pragma_version()", "pragma_table_info('t')",
             "sniff_csv('f.csv')", "parquet_metadata('f.parquet')", "parquet_schema('f.parquet')", "sqlite_scan('a', 'b')",
             "arrow_scan(1, 2, 3)", "hf_blocks('x')", "hf_scan('1')", "hf_anything()", "seq_scan('t')", "no_such_function(1)"]


def refused(place, sql, codes, *options):
    done = place.sql(*options, "-c", sql)
    check(done.status == 1 and done.out == "", f"{sql}: not refused: {done}")
    check(any(f"error: {code}: " in done.err for code in codes), f"{sql}: {done.err}")
    check("hint: " in done.err, f"{sql}: no hint: {done.err}")


def all_of(problems_of):
    """Runs every item and tells all that fail at once."""
    problems = []
    for item in problems_of:
        try:
            item()
        except Exception as error:
            problems.append(str(error))
    check(not problems, "\n".join(problems))


def statements_outside_the_list(place):
    before = sorted(os.listdir(place.dir))
    all_of([lambda sql=sql: refused(place, sql, ["STATEMENT_REFUSED"]) for sql in STATEMENTS] +
           [lambda sql=sql: refused(place, sql, ["SYNTAX", "STATEMENT_REFUSED"]) for sql in INSIDE])
    same(sorted(set(os.listdir(place.dir)) - {"work"}), before, "files")
    place.check_clean()


def table_functions_outside_the_list(place):
    place.write("f.csv", "secret\n1\n")
    codes = ["FUNCTION_REFUSED", "FUNCTION_NOT_FOUND"]
    all_of([lambda f=f: refused(place, f"SELECT * FROM {f}", codes) for f in FUNCTIONS] +
           [lambda: refused(place, "SELECT (SELECT count(*) FROM read_text('f.csv'))", codes),
            lambda: refused(place, "WITH a AS (FROM read_blob('f.csv')) SELECT * FROM a", codes),
            lambda: refused(place, "CREATE VIEW v AS SELECT * FROM glob('*')", codes),
            lambda: refused(place, "SELECT * FROM range(3) t, LATERAL (SELECT * FROM query('SELECT 1'))", codes),
            lambda: refused(place, "EXPLAIN SELECT * FROM read_text('f.csv')", codes)])
    place.check_clean()


def system_tables(place):
    names = ["duckdb_tables", "information_schema.tables", "pg_catalog.pg_class", "sqlite_master", "duckdb_settings"]
    all_of([lambda n=n: refused(place, f"SELECT * FROM {n}", ["TABLE_NOT_FOUND", "FUNCTION_REFUSED"]) for n in names])


def paths_outside_the_allowed(place):
    for name in ("in", "in2", "out"):
        os.mkdir(place.path(name))
        place.write(f"{name}/f.csv", "a\n1\n")
    os.symlink(place.path("out/f.csv"), place.path("in/link.csv"))
    os.symlink(place.path("out"), place.path("in/linked"))
    allow = ["--allow-path", "in", "--allow-path", place.path("in2")]
    ok = place.sql(*allow, "-c", "SELECT * FROM 'in/f.csv'", "-c", "SELECT count(*) AS n FROM 'in2/*.csv'")
    same((ok.status, ok.out), (0, "a\n1\nn\n1\n"), ok.err)
    outside = place.path("out/f.csv")
    wrong = ["'out/f.csv'", f"'{outside}'", "'in/../out/f.csv'", "'in/link.csv'", "'in/linked/f.csv'", "'*/f.csv'",
             f"read_csv('{outside}')", f"read_csv(['in/f.csv', '{outside}'])", "'/etc/passwd.csv'", "read_csv('/etc/hostname')",
             "read_csv('/proc/self/environ')", "'in2x/f.csv'"]
    os.mkdir(place.path("in2x"))
    place.write("in2x/f.csv", "a\n1\n")
    all_of([lambda w=w: refused(place, f"SELECT * FROM {w}", ["PATH_REFUSED"], *allow) for w in wrong])
    place.check_clean()


def remote_addresses(place):
    codes = ["PATH_REFUSED", "FILE_NOT_FOUND", "UNSUPPORTED"]
    all_of([lambda p=p: refused(place, f"SELECT * FROM '{p}://localhost/x.parquet'", codes)
            for p in ("http" + "s", "s3", "file")])


def blocks_of_held_results(place):
    talk = Conversation(place)
    same(talk.ask("CACHE TABLE held AS SELECT range AS n FROM range(1000)"), [])
    same(talk.ask("SELECT 1 AS a"), ["a", "1"])  # the files of the fill's own answer have gone
    files = {path: os.path.getsize(path) for path in place.left() if os.path.exists(path)}
    check(files, "there are no blocks to read")
    text = "\n".join(talk.ask(f"SELECT * FROM read_csv('{max(files, key=files.get)}', header = false)"))
    check("PATH_REFUSED" in text, text)
    talk.end()


main([statements_outside_the_list, table_functions_outside_the_list, system_tables, paths_outside_the_allowed,
      remote_addresses, blocks_of_held_results])
