#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The formats of answers: table, CSV, JSON Lines, Arrow IPC.
import csv
import io
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from command import Terminal, check, has, main, same  # noqa: E402

ODD = "SELECT '' AS empty, NULL AS nothing, 'a,b' AS comma, 'say \"x\"' AS quote, E'two\\nlines' AS lines, 'é漢' AS wide"


def table_aligns_and_escapes(place):
    done = place.sql("--format", "table", "-c", ODD, "-c",
                     "SELECT * FROM (VALUES (1.50, 'x'), (20.00, 'yy')) AS t(a, b) ORDER BY a")
    same(done.status, 0, done.err)
    same(done.out, ''' empty | nothing | comma | quote   | lines      | wide
-------+---------+-------+---------+------------+------
       |    NULL | a,b   | say "x" | two\\nlines | é漢
(1 row)

     a | b
-------+----
  1.50 | x
 20.00 | yy
(2 rows)

''')


def wide_table_becomes_records(place):
    sql = "SELECT 1 AS a, repeat('x', 30) AS long_name"
    same(place.sql("--format", "table", "-c", sql, COLUMNS="30").out,
         "-[ row 1 ]-\n a         | 1\n long_name | " + "x" * 30 + "\n(1 row)\n\n")
    has(place.sql("--format", "table", "-c", sql, COLUMNS="36").out, " a | long_name\n")


def table_shows_a_thousand_rows(place):
    done = place.sql("--format", "table", "-c", "SELECT range AS n FROM range(1234567)")
    lines = done.out.rstrip("\n").split("\n")
    same(len(lines), 2 + 1000 + 1)
    has(lines[-1], "1,234,567 rows", "1,233,567 more")


def table_cannot_steer_the_terminal(place):
    done = place.sql("--format", "table", "-c", "SELECT chr(27) || '[2J' AS a, repeat('x', 500) AS b")
    check("\x1b" not in done.out, "an escape character is passed on")
    has(done.out, "\\x1B[2J", "xxx…")


def csv_round_trips(place):
    done = place.sql("--format", "csv", "-c", ODD)
    same(done.out.split("\n")[0], "empty,nothing,comma,quote,lines,wide")
    has(done.out, '"",,"a,b"')
    rows = list(csv.reader(io.StringIO(done.out)))
    same(rows[1], ["", "", "a,b", 'say "x"', "two\nlines", "é漢"])


def csv_is_the_default_for_a_pipe(place):
    same(place.sql("-c", "SELECT 1 AS a, 'x' AS b").out, "a,b\n1,x\n")


def csv_head_stands_without_rows(place):
    same(place.sql("-c", "SELECT 1 AS a WHERE false").out, "a\n")


def json_is_typed(place):
    sql = """SELECT 1::TINYINT AS i, 18446744073709551615::UBIGINT AS u, 170141183460469231731687303715884105727 AS h,
        1.50::DECIMAL(9,2) AS d, 0.1::DOUBLE AS f, 'nan'::DOUBLE AS nan, '-inf'::FLOAT AS inf, true AS t, NULL AS n,
        'é"\\' || chr(10) || chr(1) AS s, DATE '2024-02-29' AS day, TIMESTAMP '2024-02-29 12:30:00' AS ts,
        '\\xAA'::BLOB AS b, INTERVAL 3 DAY AS iv, 'x'::ENUM('x', 'y') AS e"""
    line = place.sql("--format", "json", "-c", sql).out
    same(line.count("\n"), 1, "lines")
    has(line, '"h":170141183460469231731687303715884105727', '"d":1.50', '"u":18446744073709551615')
    row = json.loads(line)
    same({k: row[k] for k in ("i", "f", "nan", "inf", "t", "n", "s", "day", "ts", "b", "iv", "e")},
         {"i": 1, "f": 0.1, "nan": "NaN", "inf": "-Infinity", "t": True, "n": None, "s": 'é"\\\n\x01',
          "day": "2024-02-29", "ts": "2024-02-29 12:30:00", "b": "\\xAA", "iv": "3 days", "e": "x"})


def json_nests(place):
    sql = """SELECT [1, NULL, 3] AS l, {'a': 1, 'b c': 'x, y', 'n': ['it''s', '', 'NULL', NULL]} AS s,
        MAP {'k': 1.5, 'k 2': NULL} AS m, MAP {1: [true]} AS mm, [{'a': DATE '2024-01-01'}, NULL] AS ls,
        '{"a": [1, "x y"]}'::JSON AS j, array_value(1, 2) AS arr, []::INTEGER[] AS none, NULL::INTEGER[] AS nolist"""
    row = json.loads(place.sql("--format", "json", "-c", sql).out)
    same(row, {"l": [1, None, 3], "s": {"a": 1, "b c": "x, y", "n": ["it's", "", "NULL", None]},
               "m": {"k": 1.5, "k 2": None}, "mm": {"1": [True]}, "ls": [{"a": "2024-01-01"}, None],
               "j": {"a": [1, "x y"]}, "arr": [1, 2], "none": [], "nolist": None})


def json_keeps_repeated_names_apart(place):
    row = json.loads(place.sql("--format", "json", "-c", "SELECT 1 AS a, 2 AS a, 3 AS \"q\"\"x\"").out)
    same(row, {"a": 1, "a_1": 2, 'q"x': 3})


def every_type_in_every_format(place):
    sql = "SELECT * FROM test_all_types()"
    for form in ("table", "csv", "json"):
        done = place.sql("--format", form, "-c", sql)
        same(done.status, 0, f"{form}: {done.err}")
    for line in place.sql("--format", "json", "-c", sql).out.rstrip("\n").split("\n"):
        json.loads(line)
    place.check_clean()


def arrow_messages(data):
    """Splits an IPC stream into (metadata length, body length unknown) marks; returns the number of messages."""
    at, count = 0, 0
    while at < len(data):
        mark, length = struct.unpack_from("<Ii", data, at)
        same(mark, 0xFFFFFFFF, f"continuation mark at {at}")
        if length == 0:
            return count, at + 8
        table = at + 8 + struct.unpack_from("<I", data, at + 8)[0]
        vtable = table - struct.unpack_from("<i", data, table)[0]
        slots = struct.unpack_from("<H", data, vtable)[0]
        body_slot = struct.unpack_from("<H", data, vtable + 10)[0] if slots > 10 else 0
        body = struct.unpack_from("<q", data, table + body_slot)[0] if body_slot else 0
        at += 8 + length + body
        count += 1
    raise AssertionError("no end-of-stream marker")


def arrow_is_a_whole_stream(place):
    done = place.sql("--format", "arrow", "-c",
                     "SELECT range AS n, 'x' || range AS s, INTERVAL 1 MONTH AS iv FROM range(200000)", text=False)
    same(done.status, 0, done.err)
    count, end = arrow_messages(done.out)
    check(count >= 2, f"{count} messages: no batch")
    same(end, len(done.out), "length of the stream")
    try:
        import pyarrow.ipc  # not needed, but it is the judge where it is there
    except ImportError:
        return
    table = pyarrow.ipc.open_stream(done.out).read_all()
    table.validate(full=True)
    same(table.num_rows, 200000)


def arrow_is_refused_on_a_terminal(place):
    terminal = Terminal(place, "--format", "arrow")
    has(terminal.read_until("hint: [^\n]*\n"), "arrow")
    same(terminal.end(), 2, "exit status")


def three_million_rows_stream(place):
    done = place.sql("--format", "csv", "--threads", "2", "-c", "SELECT range AS n FROM range(3000000) ORDER BY n", text=False)
    same(done.status, 0)
    same(done.out.count(b"\n"), 3000001)
    check(done.out.endswith(b"\n2999999\n"), "the last row")
    place.check_clean()


main([table_aligns_and_escapes, wide_table_becomes_records, table_shows_a_thousand_rows, table_cannot_steer_the_terminal, csv_round_trips,
      csv_is_the_default_for_a_pipe, csv_head_stands_without_rows, json_is_typed, json_nests,
      json_keeps_repeated_names_apart, every_type_in_every_format, arrow_is_a_whole_stream,
      arrow_is_refused_on_a_terminal, three_million_rows_stream])
