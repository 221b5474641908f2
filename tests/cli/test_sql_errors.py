#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Bad input: each case gets a code, a message and a hint, ends a script with status 1, leaves
# no file, and does not touch what is held.
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import duckdb  # noqa: E402
from command import Terminal, check, has, main, same  # noqa: E402

PROMPT = r"holdfast> $"


def bad_inputs(place):
    """(name, statement, code, parts of the message)."""
    good = duckdb.write_parquet(place.path("good.parquet"), "SELECT range AS id, range * 2 AS amount FROM range(5000)")
    with open(good, "rb") as file:
        data = file.read()
    for name, content in (("cut.parquet", data[:len(data) // 2]), ("tail.parquet", data[:-6]), ("empty.parquet", b""),
                          ("noise.parquet", b"PAR1" + bytes(200) + b"PAR1")):
        with open(place.path(name), "wb") as file:
            file.write(content)
    damaged = bytearray(data)
    damaged[4:len(data) // 2] = bytes(len(data) // 2 - 4)
    with open(place.path("damaged.parquet"), "wb") as file:
        file.write(damaged)
    place.write("bad.csv", "id,amount\n1,10\n2,twenty\n3,30\n")
    place.write("short.csv", "id,amount\n1,10\n2\n3,30\n")
    place.write("bad.json", '{"a": 1}\n{"a": \n')
    typed = "columns = {'id': 'BIGINT', 'amount': 'BIGINT'}"
    return [
        ("unknown file", "SELECT * FROM 'absent.parquet'", "FILE_NOT_FOUND", ["absent.parquet"]),
        ("unknown file in a glob", "SELECT * FROM 'absent/*.csv'", "FILE_NOT_FOUND", ["absent/*.csv"]),
        ("truncated Parquet", "SELECT * FROM 'cut.parquet'", "FILE_FORMAT", ["cut.parquet"]),
        ("Parquet without its tail", "SELECT count(*) FROM 'tail.parquet'", "FILE_FORMAT", ["tail.parquet"]),
        ("empty Parquet", "SELECT * FROM 'empty.parquet'", "FILE_FORMAT", ["empty.parquet"]),
        ("noise as Parquet", "SELECT * FROM 'noise.parquet'", "FILE_FORMAT", ["noise.parquet"]),
        ("damaged Parquet", "SELECT sum(id), sum(amount) FROM 'damaged.parquet'", "FILE_FORMAT", []),
        ("bad CSV row", f"SELECT sum(amount) FROM read_csv('bad.csv', {typed})", "FILE_FORMAT", ["bad.csv", "twenty"]),
        ("short CSV row", f"SELECT sum(amount) FROM read_csv('short.csv', header = true, {typed})", "FILE_FORMAT",
         ["short.csv"]),
        ("bad JSON", "SELECT * FROM read_json('bad.json', columns = {'a': 'BIGINT'})", "FILE_FORMAT", ["bad.json"]),
        ("unknown reader option", "SELECT * FROM read_csv('bad.csv', heder = true)", "INVALID_ARGUMENT", ["header"]),
        ("unknown column", "SELECT amuont FROM 'good.parquet'", "COLUMN_NOT_FOUND", ["amuont", "amount"]),
        ("unknown table", "SELECT * FROM hled", "TABLE_NOT_FOUND", ["hled", "held"]),
        ("unknown function", "SELECT lenght('x')", "FUNCTION_NOT_FOUND", ["lenght", "length"]),
        ("syntax", "SELECT id FRM 'good.parquet' WHERE", "SYNTAX", ["^"]),
        ("syntax of a command", "CACHE TABLE", "SYNTAX", ["^"]),
        ("types that do not fit", "SELECT id + DATE '2024-01-01' + 'x' FROM 'good.parquet'", "", []),
        ("cast", "SELECT CAST('abc' || id AS INTEGER) FROM 'good.parquet'", "CAST", ["abc0"]),
        ("cast out of range", "SELECT CAST(id AS TINYINT) FROM 'good.parquet'", "", ["INT8"]),
        ("overflow", "SELECT 9223372036854775807 + id FROM 'good.parquet'", "OVERFLOW", ["addition"]),
        ("overflow of a division", "SELECT (id - 9223372036854775807 - 1) // -1 FROM 'good.parquet'", "OVERFLOW",
         ["division"]),
        ("error called for", "SELECT error('my own words') FROM 'good.parquet'", "QUERY", ["my own words"]),
        ("unknown setting", "SET sql.timezone = 'UTC'", "SETTING_UNKNOWN", ["sql.time_zone"]),
        ("setting of the engine", "SET memory_limit = '1GB'", "SETTING_UNKNOWN", ["memory"]),
        ("value of a setting", "SET sql.integer_division = 'perhaps'", "SETTING_VALUE", ["perhaps"]),
        ("uncache of an unknown", "UNCACHE TABLE hold", "TABLE_NOT_FOUND", ["held"]),
        ("name that is taken", "CREATE VIEW held AS SELECT 1", "NAME_EXISTS", ["held"]),
        ("two statements as one query", "SELECT 1 SELECT 2", "SYNTAX", []),
    ]


def check_message(text, name, code, parts):
    match = re.search(r"error: ([A-Z_]+): \S", text)
    check(match, f"{name}: no error in {text!r}")
    check(code in ("", match.group(1)), f"{name}: the code is {match.group(1)}, expected {code}: {text}")
    check("INTERNAL" not in text, f"{name}: {text}")
    check("hint: " in text, f"{name}: no hint in {text!r}")
    for part in parts:
        check(part in text, f"{name}: {part!r} is not in {text!r}")


def each_ends_a_script_and_leaves_nothing(place):
    problems = []
    for name, sql, code, parts in bad_inputs(place):
        done = place.sql("-c", "CREATE VIEW held AS SELECT 1 AS one", "-c", sql, "-c", "SELECT 'not reached'")
        try:
            same((done.status, done.out), (1, ""), f"{name}: {done.err}")
            check_message(done.err, name, code, parts)
            place.check_clean()
        except Exception as error:
            problems.append(str(error))
    check(not problems, "\n".join(problems))


def each_leaves_what_is_held(place):
    terminal = Terminal(place, "--no-progress")
    terminal.read_until(PROMPT)
    terminal.type("CACHE TABLE held AS SELECT range AS n FROM range(1000);\r")
    terminal.read_until(PROMPT)
    problems = []
    for name, sql, code, parts in bad_inputs(place):
        terminal.type(sql + ";\r")
        text = terminal.read_until(PROMPT)
        terminal.type("SELECT sum(n) AS s FROM held;\r")
        answer = terminal.read_until(PROMPT)
        try:
            check_message(text, name, code, [])
            has(answer, " 499500\r\n")
        except Exception as error:
            problems.append(f"{name}: {error}")
    terminal.type("SHOW CACHE;\r")
    shown = terminal.read_until(PROMPT)
    terminal.type("\\q\r")
    same(terminal.end(), 0)
    check(not problems, "\n".join(problems))
    check(re.search(r"generation +\| 1\r\n", shown), f"the hold has no generation 1: {shown}")
    place.check_clean()


def position_points_at_the_word(place):
    place.write("t.csv", "a,b\n1,2\n")
    done = place.sql("-c", "SELECT a,\n       c\nFROM 't.csv'")
    lines = done.err.split("\n")
    at = next(i for i, line in enumerate(lines) if line == "  line 2:        c")
    same(lines[at + 1].index("^"), lines[at].index("c"), done.err)
    for head in ("EXPLAIN ", "EXPLAIN ANALYZE ", "CACHE TABLE kept AS ", "CACHE LAZY TABLE kept AS "):
        done = place.sql("--tasks", "2", "-c", f"{head}SELECT a, zz FROM 't.csv'")
        lines = done.err.split("\n")
        at = next(i for i, line in enumerate(lines) if line.startswith("  line 1:"))
        same(lines[at + 1].index("^"), lines[at].index("zz"), done.err)
    done = place.sql("-c", "SELECT 'é漢字' AS w, a frm 't.csv'")
    has(done.err, "^")
    line = next(line for line in done.err.split("\n") if line.startswith("  line 1:"))
    check("é漢字" in line, done.err)


def division_by_zero_is_no_error(place):
    done = place.sql("--format", "json", "-c", "SELECT 1 / 0 AS a, 1 // 0 AS b, 1 % 0 AS c")
    same(done.out, '{"a":"Infinity","b":null,"c":null}\n', done.err)


def memory_that_is_too_small(place):
    done = place.sql("--memory", "32MiB", "-c", "SELECT length(string_agg(range::VARCHAR, ',')) FROM range(20000000)")
    same((done.status, done.out), (1, ""), done.err)
    has(done.err, "OUT_OF_MEMORY", "--memory")
    place.check_clean()
    done = place.sql("--memory", "1KiB", "-c", "SELECT 1")
    same(done.status, 2)
    has(done.err, "SETTING_VALUE", "16MiB")


def mounted(directory):
    if os.geteuid() != 0:
        return False
    os.mkdir(directory)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", directory], capture_output=True)
    return made.returncode == 0


def disk_that_is_full(place):
    small = place.path("small")
    if not mounted(small):
        print("skipped: a small file system cannot be mounted here")
        return
    place.work = os.path.join(small, "work")
    wide = "SELECT range AS n, md5(range::VARCHAR) AS h FROM range(2000000)"
    try:
        done = place.sql("-c", wide)
        same(done.status, 1, done.err)
        has(done.err, "DISK_FULL", "--work-dir")
        place.check_clean()
        done = place.sql("-c", "CACHE TABLE small AS SELECT range AS n FROM range(1000)", "-c",
                         f"CACHE LAZY TABLE wide AS {wide}", "-c", "SELECT sum(n) AS s, count(h) AS c FROM wide",
                         "-c", "SELECT sum(n) AS s FROM small")
        same((done.status, done.out), (0, "s,c\n1999999000000,2000000\ns\n499500\n"), done.err)
        has(done.err, "warning: ")
        place.check_clean()
    finally:
        subprocess.run(["umount", small], check=True)


def work_directory_that_cannot_be(place):
    place.write("file", "x")
    place.work = place.path("file")
    done = place.sql("-c", "SELECT 1")
    same((done.status, done.out), (1, ""))
    has(done.err, "WORK_DIR", "--work-dir")


main([each_ends_a_script_and_leaves_nothing, each_leaves_what_is_held, position_points_at_the_word,
      division_by_zero_is_no_error, memory_that_is_too_small, disk_that_is_full, work_directory_that_cannot_be])
