#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# `holdfast verify`: what it compares, what it says, its last lines and its exit status.
import glob
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from command import DEADLINE_S, HOLDFAST, Result, check, has, main, same  # noqa: E402


def verify(place, *arguments):
    """Runs the command with a temporary directory of its own, which must be empty afterwards."""
    scratch = place.path("scratch")
    os.makedirs(scratch, exist_ok=True)
    done = subprocess.run([HOLDFAST, "verify", *arguments], text=True, capture_output=True, timeout=DEADLINE_S,
                          cwd=place.dir, env=place.environment(TMPDIR=scratch))
    same(os.listdir(scratch), [], "left in the temporary directory")
    return Result(done.returncode, done.stdout, done.stderr)


def objects(done):
    """Queries by name, and the totals, of --json."""
    lines = [json.loads(line) for line in done.out.splitlines()]
    return {line["name"]: line for line in lines[:-1]}, lines[-1]


def last_lines(done):
    return done.out.splitlines()[-2:]


def wrong_usage_is_2_and_says_what_to_do(place):
    for arguments, parts in (([], ["nothing to verify", "--suite"]),
                             (["--suite", "tpcx"], ["unknown suite tpcx", "tpch"]),
                             (["--suite", "tpch", "-c", "SELECT 1"], ["cannot be combined"]),
                             (["-c", "SELECT 1", "--sf", "1"], ["--sf is for --suite"]),
                             (["--suite", "tpch", "--sf", "-1"], ["--sf cannot take -1"]),
                             (["--suite", "tpch", "--sf", "1e3"], ["--sf cannot take 1e3"]),
                             (["-c", "SELECT 1", "--tasks", "none"], ["SETTING_VALUE", "tasks"]),
                             (["-c", "SELECT 1", "--tasks", "0"], ["SETTING_VALUE", "tasks", "1..256"]),
                             (["-c", "SELECT 1", "--tasks", "99999999999"], ["SETTING_VALUE", "tasks"]),
                             (["-c", "SELECT 1", "--slots", "0"], ["SETTING_VALUE", "slots"]),
                             (["-c", "SELECT 1", "--seed", "1"], ["--seed is for --generate"]),
                             (["-c", "SELECT 1", "--slt-dir", "x"], ["--slt-dir is for --suite slt"]),
                             (["--suite", "slt", "--sf", "1"], ["--sf is for data that are made"]),
                             (["--generate", "0"], ["--generate cannot take 0"]),
                             (["--generate", "x"], ["--generate cannot take x"]),
                             (["--generate", "1", "--seed", "1.2.3"], ["--seed cannot take 1.2.3", "7.123"]),
                             (["--generate", "1", "--seed", "3."], ["--seed cannot take 3."]),
                             (["--generate", "1", "-c", "SELECT 1"], ["--generate cannot be combined"]),
                             (["-c", "SELECT 1", "--exchange", "fast"], ["--exchange cannot take fast", "streaming"]),
                             (["-c"], ["-c"]),
                             (["-c", "SELECT 1", "--task", "3"], ["--tasks"]),
                             (["-c", "SELECT 1", "--allow-path", "/no/such/place"], ["/no/such/place"])):
        done = verify(place, *arguments)
        same((done.status, done.out), (2, ""), f"{arguments}: {done.err}")
        has(done.err, *parts)
    has(verify(place, "--help").out, "--suite NAME", "--tasks N", "docs/verify.md")


def one_query_may_fall_back_and_says_why(place):
    done = verify(place, "-c", "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) t(x, y) ORDER BY x")
    same(done.status, 0, done.err)
    has(done.out, "query 1", "passed", "2 rows", "fell back: ")
    same(last_lines(done), ["distributed 0, fell back 1", "1 passed, 0 failed, 0 skipped"])


def several_queries_that_all_fall_back_show_nothing(place):
    done = verify(place, "-c", "SELECT 1; SELECT 2")
    same(done.status, 1)
    has(done.err, "all queries fell back")
    same(last_lines(done), ["distributed 0, fell back 2", "2 passed, 0 failed, 0 skipped"])
    same(verify(place, "-c", "SELECT 1; SELECT 2", "--tasks", "1").status, 0)


def suite_is_distributed_and_its_kept_files_are_used_again(place):
    suite = ("--suite", "tpch", "--sf", "0.01", "--keep", "kept")
    done = verify(place, *suite)
    same(done.status, 0, done.err + done.out)
    same(last_lines(done), ["distributed 22, fell back 0", "22 passed, 0 failed, 0 skipped"])
    path = os.path.join(place.dir, "kept", "tpch-sf0.01", "lineitem.parquet")
    before = os.stat(path).st_mtime_ns
    done = verify(place, *suite, "--json", "--tasks", "1")
    queries, totals = objects(done)
    same((done.status, totals["passed"], len(queries)), (0, 22, 22), done.out)
    same(os.stat(path).st_mtime_ns, before)
    os.remove(os.path.join(os.path.dirname(path), "complete"))
    verify(place, *suite, "--tasks", "1")
    check(os.stat(path).st_mtime_ns != before, "files that are not complete were used")
    done = verify(place, "--json", "--tasks", "4", "--slots", "2",
                  "-c", f"SELECT l_returnflag, sum(l_tax), count(*) FROM '{path}' GROUP BY ALL ORDER BY 1",
                  "-c", f"SELECT l_orderkey, l_linenumber FROM '{path}' WHERE l_tax > 0.05",
                  "-c", f"SELECT avg(l_tax::DOUBLE), list(l_orderkey) FROM '{path}'")
    queries, totals = objects(done)
    same((done.status, totals["passed"]), (0, 3), done.out)
    for name in queries:
        check(queries[name]["distributed"] and queries[name]["fallback"] is None, done.out)
        check(2 <= queries[name]["tasks"] <= 4, done.out)
    same(queries["query 1"]["order_columns"], 1)
    same(queries["query 3"]["rows"], 1)


QUERY_KEYS = {"name": str, "overlay": (str, type(None)), "result": str, "rows": int, "distributed": bool, "tasks": int, "stages": int,
              "order_columns": int, "tied_rows": int, "single_ms": float, "distributed_ms": float,
              "fallback": (str, type(None)), "reason": (str, type(None)), "differences": (str, type(None))}
TOTAL_KEYS = ["distributed", "fell_back", "passed", "failed", "skipped"]


def json_has_the_keys_that_are_documented(place):
    for part in range(3):
        place.write(f"p{part}.csv", "x,y\n" + "".join(f"{part * 10 + i},a\n" for i in range(10)))
    done = verify(place, "--json", "-c", "SELECT x FROM 'p*.csv' ORDER BY x", "-c", "SELECT 1",
                  "-c", "SELECT y::INTEGER FROM 'p*.csv'", "-c", "SELECT random()", "-c", "SELECT * FROM glob('*')")
    bad = verify(place, "--json", "--memory", "64MiB", "-c", "SELECT length(list(range)) FROM range(20000000)")
    lines = [json.loads(line) for line in done.out.splitlines()]
    lines.insert(5, json.loads(bad.out.splitlines()[0]))
    for line in lines[:-1]:
        same(list(line), list(QUERY_KEYS), "keys, in order")
        for key, kind in QUERY_KEYS.items():
            check(isinstance(line[key], kind) and (kind is bool or not isinstance(line[key], bool)), f"{key}: {line}")
    same(list(lines[-1]), TOTAL_KEYS)
    check(all(type(lines[-1][key]) is int for key in TOTAL_KEYS), done.out)
    same([line["result"] for line in lines[:-1]], ["passed", "passed", "passed", "skipped", "skipped", "failed"])
    same([line["fallback"] is None for line in lines[:-1]], [True, False, True, False, True, True], done.out)
    same([line["reason"] is None for line in lines[:-1]], [True, True, False, False, False, False], done.out)
    same(lines[0]["distributed"], True)
    with open(os.path.join(os.environ["HOLDFAST_SOURCE"], "docs", "verify.md"), encoding="utf-8") as page:
        documented = page.read()
    for key in [*QUERY_KEYS, *TOTAL_KEYS, "sql", "case", "rejected", "differed"]:
        check(f"`{key}`" in documented, f"docs/verify.md lacks {key}")


def run_without_a_query_shows_nothing(place):
    place.write("t.csv", "x\n1\n")
    script = place.write("empty.sql", "-- no query\n;;\nCREATE VIEW v AS FROM 't.csv';\n")
    for arguments in (["-c", ""], ["-c", "; ;"], ["-f", script]):
        done = verify(place, *arguments)
        same(done.status, 1, done.out)
        has(done.err, "there was no query")
        same(last_lines(done), ["distributed 0, fell back 0", "0 passed, 0 failed, 0 skipped"])


def text_that_cannot_be_read_is_one_query_of_a_file(place):
    script = place.write("bad.sql", "SELECT 1;\n\nSELEC 2;\nSELECT (3;\nSELECT x FROM nothing;\n"
                                    "SELECT 'this has no end;\nSELECT 4;")
    done = verify(place, "--json", "--tasks", "1", "-f", script)
    queries, totals = objects(done)
    same((done.status, totals["passed"]), (0, 5), done.out)
    same({name: line["reason"] for name, line in queries.items()},
         {"bad.sql:1": None, "bad.sql:3": "both fail with SYNTAX", "bad.sql:4": "both fail with SYNTAX",
          "bad.sql:5": "both fail with TABLE_NOT_FOUND", "bad.sql:6": "both fail with SYNTAX"})


def both_failing_alike_passes(place):
    sql = ["SELEC 1", "SELECT * FROM no_such_table", "SELECT no_such FROM range(3)", "SELECT no_such(1)",
           "SELECT CAST(x AS INTEGER) FROM (VALUES ('a')) t(x)", "SELECT * FROM 'no/such.parquet'",
           "SELECT (SELECT range FROM range(2))", "SELECT " + "abs(" * 3000 + "1" + ")" * 3000]
    done = verify(place, "--json", *[word for text in sql for word in ("-c", text)])
    queries, totals = objects(done)
    same((done.status, totals["passed"], totals["fell_back"]), (0, len(sql), 0), done.out + done.err)
    same(queries["query 1"]["reason"], "both fail with SYNTAX")
    same(queries["query 5"]["reason"], "both fail with CAST")


def what_holdfast_refuses_is_skipped(place):
    place.write("a.csv", "x\n1\n")
    done = verify(place, "--json", "-c", "SELECT count(*) FROM glob('*.csv')", "-c", "SELECT random() FROM range(5)")
    queries, totals = objects(done)
    same((done.status, totals["skipped"], totals["passed"]), (0, 2, 0), done.out)
    has(queries["query 1"]["reason"], "FUNCTION_REFUSED")
    has(queries["query 2"]["reason"], "not determinate")


def pivot_that_duckdb_has_no_query_for_is_skipped(place):
    done = verify(place, "--json", "-c", "PIVOT (SELECT range % 3 AS a, range AS i FROM range(9)) ON a USING sum(i)")
    queries, totals = objects(done)
    same((done.status, totals["skipped"], totals["passed"]), (0, 1, 0), done.out)
    has(queries["query 1"]["reason"], "a PIVOT without its values")


def query_that_only_one_side_answers_fails(place):
    # The session has less memory than the single-node side.
    sql = "SELECT length(list(range)) FROM range(20000000)"
    done = verify(place, "--memory", "64MiB", "-c", sql)
    same(done.status, 1, done.out)
    has(done.out, "failed", "single-node has an answer; holdfast fails with OUT_OF_MEMORY")
    same(last_lines(done), ["distributed 0, fell back 0", "0 passed, 1 failed, 0 skipped"])
    done = verify(place, "--memory", "64MiB", "--json", "-c", sql)
    queries, totals = objects(done)
    same((done.status, queries["query 1"]["result"], totals["failed"]), (1, "failed", 1))


def script_makes_views_on_both_sides(place):
    place.write("t.csv", "k,v\n" + "".join(f"{i % 3},{i}\n" for i in range(30)))
    script = place.write("some.sql", "-- views first\nCREATE VIEW v AS FROM 't.csv';\n\n"
                         "SELECT k, sum(v) FROM v GROUP BY k;\n"
                         "CACHE TABLE held AS SELECT * FROM v WHERE k > 0; SELECT max(v) FROM held;\n"
                         "DROP VIEW v;\nSELECT * FROM v")
    done = verify(place, "--json", "--tasks", "1", "-f", script)
    queries, totals = objects(done)
    same((done.status, totals["passed"]), (0, 3), done.out + done.err)
    same(list(queries), ["some.sql:4", "some.sql:5", "some.sql:7"])
    same(queries["some.sql:7"]["reason"], "both fail with TABLE_NOT_FOUND")


def command_that_fails_ends_the_run(place):
    done = verify(place, "-c", "SELECT 1; SET tasks = 5; SELECT 2")
    same(done.status, 1)
    has(done.err, "STATEMENT_REFUSED", "leave SET and RESET out")
    check("query 2" not in done.out, done.out)
    done = verify(place, "-f", "no-such.sql")
    same(done.status, 1)
    has(done.err, "FILE_NOT_FOUND", "no-such.sql")


def order_is_compared_as_far_as_it_is_known(place):
    cases = [("SELECT range AS a, -range AS b FROM range(9) ORDER BY b, a", 2),
             ("SELECT range AS a, -range AS b FROM range(9) ORDER BY 2", 1),
             ("SELECT range % 3, sum(range) FROM range(9) GROUP BY 1 ORDER BY sum(range), range % 3", 2),
             ("SELECT range % 3 AS k, sum(range) FROM range(9) GROUP BY 1 ORDER BY k, max(range), 2", 1),
             ("SELECT t.range FROM range(9) t ORDER BY t.range", 1),
             ("SELECT * FROM range(9) t ORDER BY t.range + 1", 0),
             ("SELECT range, range + 1 FROM range(9) ORDER BY ALL", 2),
             ("SELECT 2 AS x UNION ALL SELECT 1 ORDER BY x LIMIT 1", 1),
             ("WITH c AS (SELECT range AS r FROM range(9)) SELECT r FROM c ORDER BY r DESC LIMIT 3", 1),
             ("SELECT range FROM range(9)", 0)]
    done = verify(place, "--json", "--tasks", "1", *[word for sql, _ in cases for word in ("-c", sql)])
    queries, totals = objects(done)
    same((done.status, totals["passed"]), (0, len(cases)), done.out)
    for i, (sql, columns) in enumerate(cases):
        same(queries[f"query {i + 1}"]["order_columns"], columns, sql)


def overlays_need_a_build_with_the_harness(place):
    done = verify(place, "-c", "SELECT 1", "--overlay", "no_such")
    if "needs the harness" in done.err:
        same(done.status, 2, done.err)
        has(done.err, "--overlay needs the harness", "-DHOLDFAST_HARNESS=ON")
        return
    same(done.status, 2, done.err)
    has(done.err, "there is no such overlay: no_such", "tasks_3", "or all")
    for names, message in (("tasks_3,,", "is empty"), (",tasks_3", "is empty"), ("", "is empty"),
                           ("all,tasks_3", "all overlays cannot be one of several"),
                           ("tasks_3,again,tasks_3", "named twice: tasks_3")):
        done = verify(place, "-c", "SELECT 1", "--overlay", names)
        same(done.status, 2, names)
        has(done.err, message)
    rows = "".join(f"{i},{i % 7}\n" for i in range(200))
    for part in range(3):
        place.write(f"p{part}.csv", "x,y\n" + rows)
    sql = "CREATE VIEW v AS FROM 'p*.csv'; SELECT y, sum(x) FROM v GROUP BY y ORDER BY y; SELECT nothing FROM v"
    done = verify(place, "--overlay", "tasks_3,hash_zero", "-c", sql)
    same(done.status, 0, done.out + done.err)
    has(done.out, "query 1  tasks_3", "query 1  hash_zero", "distributed: 3 tasks",
        "tasks_3              distributed 1, fell back 0, rejected 1, differed 0",
        "hash_zero            distributed 1, fell back 0, rejected 1, differed 0",
        "     1 tasks_3 both fail with COLUMN_NOT_FOUND")
    same(last_lines(done), ["distributed 2, fell back 0", "4 passed, 0 failed, 0 skipped"])
    done = verify(place, "--json", "--exchange", "streaming", "--tasks", "2", "-c", sql)
    lines = [json.loads(line) for line in done.out.splitlines()]
    same([line.get("overlay") for line in lines], ["streaming", "streaming", "streaming", None], done.out)
    same((lines[2]["distributed"], lines[2]["rejected"], lines[3]["passed"]), (1, 1, 2), done.out)
    done = verify(place, "--overlay", "tasks_3", *["-c", "SELECT 1"] * 12)
    same(done.status, 1, done.out)
    has(done.err, "all queries fell back")


SLT = """# SPDX-License-Identifier: Apache-2.0
statement ok
SET TimeZone = 'Asia/Tokyo'

statement ok
CREATE TABLE t(i INTEGER, h HUGEINT, e ENUM('b', 'a'), u UNION(n INTEGER, s VARCHAR));

statement ok
INSERT INTO t SELECT i, i * 1000000000000000000000, CASE i % 2 WHEN 0 THEN 'a' ELSE 'b' END, i::INTEGER FROM range(100) r(i)

statement error
INSERT INTO no_such VALUES (1)

query III
SELECT e, sum(h), min(e) FROM t GROUP BY e ORDER BY e
----
b\t2500000000000000000000000\tb

statement ok
CREATE VIEW v AS SELECT i + 1 AS j, u FROM t

statement ok
CREATE TABLE plain AS SELECT i, TIMESTAMPTZ '2020-01-01 00:00:00+00' + to_hours(i) AS z FROM t

query I
SELECT sum(j), count(u.n) FROM v

query I
SELECT z::DATE, count(*), max(i) FROM plain GROUP BY ALL

statement ok
DELETE FROM plain WHERE i > 10

query I
SELECT count(*), max(z::VARCHAR) FROM plain

query I
SELECT * FROM no_such
"""


def slt_files_are_run_on_both_sides(place):
    os.makedirs(place.path("files/deep"))
    place.write("files/deep/some.test", SLT)
    place.write("files/other.test", "require no_such\n\nquery I\nSELECT 1\n")
    done = verify(place, "--suite", "slt", "--slt-dir", "files", "--json")
    queries, totals = objects(done)
    same((done.status, totals["passed"], totals["failed"]), (0, 5, 0), done.out + done.err)
    same(list(queries), [f"some.test:{line}" for line in (14, 25, 28, 34, 37)])
    same([line["rows"] for line in queries.values()], [2, 1, 5, 1, 0])
    check(totals["distributed"] >= 3, done.out)
    same(queries["some.test:37"]["reason"], "both fail with TABLE_NOT_FOUND")
    same(verify(place, "--suite", "slt", "--slt-dir", "files/deep/some.test").status, 0)
    done = verify(place, "--suite", "slt", "--slt-dir", "files")
    has(done.out, "     1 files not run: require no_such", "     1 both fail with TABLE_NOT_FOUND")
    done = verify(place, "--suite", "slt", "--slt-dir", "nothing")
    same(done.status, 1, done.out)
    has(done.err, "FILE_NOT_FOUND", "there are no *.test files: nothing", "--slt-dir")


def generated_queries_are_the_same_for_a_seed(place):
    done = verify(place, "--generate", "12", "--seed", "4", "--json")
    same(done.status, 0, done.out + done.err)
    queries, totals = objects(done)
    same(list(queries), [f"4.{i}" for i in range(12)])
    check(totals["distributed"] > 0 and totals["failed"] == 0, done.out)
    again, _ = objects(verify(place, "--generate", "2", "--seed", "4.10", "--json", "--tasks", "2"))
    same({name: line["sql"] for name, line in again.items()},
         {name: queries[name]["sql"] for name in ("4.10", "4.11")})
    same({line["case"] for line in queries.values()}, {None})
    done = verify(place, "--generate", "3", "--seed", "4")
    same(last_lines(done), [f"distributed {sum(queries[f'4.{i}']['distributed'] for i in range(3))}, fell back "
                            f"{sum(queries[f'4.{i}']['fallback'] is not None for i in range(3))}",
                            "3 passed, 0 failed, 0 skipped"], done.out)


def signal_ends_the_single_node_side_too(place):
    scratch = place.path("scratch")
    os.makedirs(scratch, exist_ok=True)
    slow = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE (a.range * b.range) % 7 = 3"
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        process = subprocess.Popen([HOLDFAST, "verify", "-c", slow], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, cwd=place.dir, env=place.environment(TMPDIR=scratch))
        while not glob.glob(f"{scratch}/holdfast-verify-*/single/answer-1"):
            check(process.poll() is None, "the query ended by itself")
        process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE_S)
        same((process.returncode, out, err), (status, "", "cancelled\n"))
        same(os.listdir(scratch), [], "left in the temporary directory")


def directories_of_killed_runs_go_when_the_next_begins(place):
    scratch = place.path("scratch")
    os.makedirs(f"{scratch}/holdfast-verify-nobody")  # in the making: there is no lock yet
    os.makedirs(f"{scratch}/holdfast-verify-signed")
    os.makedirs(f"{scratch}/holdfast-verify-of-another-kind")
    for name in ("unsigned", "another"):
        os.makedirs(f"{scratch}/holdfast-verify-{name[:6]}")
    open(f"{scratch}/holdfast-verify-unsign/lock", "w").close()
    os.symlink("/etc/hostname", f"{scratch}/holdfast-verify-anothe/lock")
    with open(f"{scratch}/holdfast-verify-signed/lock", "w", encoding="utf-8") as lock:
        lock.write("1\n")
    kept = {"holdfast-verify-nobody", "holdfast-verify-of-another-kind", "holdfast-verify-unsign", "holdfast-verify-anothe"}
    slow = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE (a.range * b.range) % 7 = 3"
    process = subprocess.Popen([HOLDFAST, "verify", "-c", slow], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, cwd=place.dir, env=place.environment(TMPDIR=scratch))
    while not glob.glob(f"{scratch}/holdfast-verify-*/single/answer-1"):
        check(process.poll() is None, "the query ended by itself")

    def left_by_another_run():
        done = subprocess.run([HOLDFAST, "verify", "-c", "SELECT 1"], text=True, capture_output=True,
                              timeout=DEADLINE_S, cwd=place.dir, env=place.environment(TMPDIR=scratch))
        same(done.returncode, 0, done.stderr)
        return set(os.listdir(scratch)) - kept

    same(len(left_by_another_run()), 1, "the directory of a run at work")
    process.kill()
    process.communicate(timeout=DEADLINE_S)
    same(len(set(os.listdir(scratch)) - kept), 1, "what a killed run leaves")
    same(left_by_another_run(), set(), "after the next run")
    same(set(os.listdir(scratch)), kept, "what is not known to be of a dead run")


def paths_are_refused_on_both_sides(place):
    os.makedirs(place.path("in"))
    place.write("in/a.csv", "x\n1\n")
    place.write("b.csv", "x\n1\n")
    done = verify(place, "--json", "--tasks", "1", "--allow-path", place.path("in"),
                  "-c", "SELECT * FROM 'in/a.csv'", "-c", "SELECT * FROM 'b.csv'")
    queries, _ = objects(done)
    same(done.status, 0, done.out)
    same((queries["query 1"]["result"], queries["query 1"]["rows"]), ("passed", 1))
    same(queries["query 2"]["reason"], "both fail with PATH_REFUSED")


main([wrong_usage_is_2_and_says_what_to_do,
      json_has_the_keys_that_are_documented,
      run_without_a_query_shows_nothing,
      text_that_cannot_be_read_is_one_query_of_a_file,
      one_query_may_fall_back_and_says_why,
      several_queries_that_all_fall_back_show_nothing,
      suite_is_distributed_and_its_kept_files_are_used_again,
      both_failing_alike_passes,
      what_holdfast_refuses_is_skipped,
      pivot_that_duckdb_has_no_query_for_is_skipped,
      query_that_only_one_side_answers_fails,
      script_makes_views_on_both_sides,
      command_that_fails_ends_the_run,
      order_is_compared_as_far_as_it_is_known,
      overlays_need_a_build_with_the_harness,
      slt_files_are_run_on_both_sides,
      generated_queries_are_the_same_for_a_seed,
      signal_ends_the_single_node_side_too,
      directories_of_killed_runs_go_when_the_next_begins,
      paths_are_refused_on_both_sides])
