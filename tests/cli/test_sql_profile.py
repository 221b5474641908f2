#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# EXPLAIN ANALYZE, and --profile: a JSON object for each statement that ran something.
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import duckdb  # noqa: E402
from command import has, main, same  # noqa: E402


def profiles(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def amounts(rows, key):
    return sum(row[key] for row in rows)


def profile_has_a_line_a_statement(place):
    data = duckdb.write_parquet(place.path("in.parquet"),
                                "SELECT range AS n, range % 5 AS g FROM range(20000)")
    out = place.path("profile.jsonl")
    done = place.sql("--slots", "2", "--tasks", "2", "--profile", out, "-c",
                     f"CREATE VIEW v AS SELECT * FROM '{data}'; SELECT g, count(*) FROM v GROUP BY g ORDER BY g;"
                     "CACHE TABLE t AS SELECT n FROM v WHERE g = 1; SELECT CAST('x' || n AS INTEGER) FROM t;")
    same(done.status, 1)
    query, cached, failed = profiles(out)  # a view runs nothing
    same((query["result_rows"], query["error"], query["complete"]), (5, None, True))
    scan = query["stages"][0]
    same((scan["n_tasks"], scan["source_rows"], scan["failed_attempts"]), (2, 20000, 0))
    attempts = [attempt for task in scan["tasks"] for attempt in task]
    same(amounts(attempts, "source_rows"), 20000)
    same({attempt["end"] for attempt in attempts}, {"finished"})
    reads = [stage["fill"] for stage in cached["stages"][0]["inputs"]]
    same([fill["held"] for fill in reads], ["t"])
    same(amounts(reads[0]["stages"][-1:], "rows"), 4000)
    same(failed["error"], "CAST")
    same(failed["stages"][0]["failed_attempts"] >= 1, True)


def profile_that_cannot_be_written_is_an_error(place):
    done = place.sql("--profile", place.path("no/such/directory.jsonl"), "-c", "SELECT 1")
    same((done.status, done.out), (1, ""))
    has(done.err, "cannot write profiles to ", "No such file or directory")
    done = place.sql("--profile", "/dev/full", "-c", "SELECT 1 AS x")
    same((done.status, done.out), (1, "x\n1\n"))
    has(done.err, "cannot write profiles to /dev/full: No space left on device")


def analyze_is_read_as_plain_lines(place):
    done = place.sql("--format", "table", "-c", "EXPLAIN ANALYZE SELECT 41 + 1 AS answer")
    same(done.status, 0)
    lines = done.out.splitlines()
    same(lines[0], "== Holdfast plan, as it ran ==")
    same(bool(re.match(r"  ran: 1 task in [\d.]+ ms: [\d.]+ ms, waited [\d.]+ ms; read nothing; wrote 1 row \(\d+ bytes\); memory .*; local$",
                       lines[3])), True, lines[3])
    same(lines[-3], "1 stage, 1 task, 1 attempt, 0 of them failed")
    same(lines[-1].startswith("result: 1 row ("), True)
    place.check_clean()


main([profile_has_a_line_a_statement, profile_that_cannot_be_written_is_an_error, analyze_is_read_as_plain_lines])
