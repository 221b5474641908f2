#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Which thing a name stands for, where held results may stand in a query, and what happens to
# them when names change.
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from command import Conversation, has, main, same  # noqa: E402

HELD = "CACHE TABLE h AS SELECT range AS i, random() AS r FROM range(5)"


def answers(place, *pairs):
    """Statements of one session, each with the lines of its answer; None: whatever they are."""
    talk = Conversation(place)
    for sql, lines in pairs:
        found = talk.ask(sql)
        if lines is not None:
            same(found, lines, sql)
    same(talk.end()[0], 0)
    place.check_clean()


def common_table_expression_hides_what_is_outside(place):
    place.write("f.csv", "a\n1\n")
    answers(place, (HELD, []), ("CREATE VIEW v AS SELECT 1 AS n", []),
            ("WITH h AS (SELECT 42 AS r) FROM h", ["r", "42"]),
            ("WITH v AS (SELECT 2 AS n) FROM v", ["n", "2"]),
            ("WITH f AS (SELECT 3 AS n) FROM f", ["n", "3"]),
            ("WITH h AS (SELECT * FROM h WHERE i < 2) SELECT count(*) AS n FROM h", ["n", "2"]),
            ("WITH RECURSIVE h AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM h WHERE a < 3) FROM h",
             ["a", "1", "2", "3"]),
            ("SELECT (WITH h AS (SELECT 7 AS i) SELECT max(i) FROM h) AS a, max(i) AS b FROM h", ["a,b", "7,4"]),
            ("SELECT count(*) AS n FROM main.h", ["n", "5"]), ("SELECT count(*) AS n FROM \"H\"", ["n", "5"]))


def held_result_may_stand_anywhere(place):
    answers(place, (HELD, []),
            ("SELECT count(*) AS n FROM h a JOIN h b USING (r)", ["n", "5"]),
            ("SELECT (SELECT max(i) FROM h) AS a, EXISTS (FROM h WHERE i = 9) AS b, 3 IN (SELECT i FROM h) AS c",
             ["a,b,c", "4,false,true"]),
            ("SELECT sum(x) AS s FROM h a, LATERAL (SELECT a.i + b.i AS x FROM h b WHERE b.i = a.i)", ["s", "20"]),
            ("SELECT count(*) AS n FROM (SELECT i FROM h UNION SELECT i + 1 FROM h)", ["n", "6"]),
            ("SELECT sum(\"1\") AS a FROM (PIVOT (SELECT i FROM h) ON i IN (1, 2) USING count(*))", ["a", "1"]),
            ("SELECT count(*) AS n FROM (UNPIVOT (SELECT i, i + 1 AS j FROM h) ON i, j)", ["n", "10"]),
            ("SELECT string_agg(column_name, '+') AS c FROM (DESCRIBE h)", ["c", "i+r"]),
            ("SELECT count FROM (SUMMARIZE h) LIMIT 1", ["count", "5"]),
            ("SELECT held.i FROM h AS held ORDER BY held.i DESC LIMIT 1", ["i", "4"]))


def odd_names_are_kept_by_holding(place):
    columns = '1 AS "a", 2 AS "a", 3 AS " ", 4 AS "a.b", 5 AS "😀", 6 AS "select", 7 AS "say ""x""", 8 AS "it\'s"'
    head = 'a,a_1, ,a.b,😀,select,"say ""x""",it\'s'
    answers(place, (f"CACHE TABLE odd AS SELECT {columns}", []),
            ("FROM odd", [head, "1,2,3,4,5,6,7,8"]),
            ('SELECT "a.b", "😀", "select", "say ""x""" FROM odd', ['a.b,😀,select,"say ""x"""', "4,5,6,7"]),
            ("CACHE TABLE again AS FROM odd", []), ("FROM again", [head, "1,2,3,4,5,6,7,8"]),
            (f'CREATE VIEW "it\'s ""x""" AS SELECT {columns}', []), ('CACHE TABLE "it\'s ""x"""', []),
            ('FROM "it\'s ""x"""', [head, "1,2,3,4,5,6,7,8"]), ('UNCACHE TABLE "it\'s ""x"""', []),
            ('SELECT "😀" FROM "it\'s ""x"""', ["😀", "5"]))


def view_keeps_what_it_was_made_of(place):
    answers(place, ("CREATE VIEW base AS SELECT range AS i FROM range(10)", []),
            ("CACHE LAZY TABLE mid AS SELECT i * 2 AS j FROM base", []),
            ("CREATE VIEW top AS SELECT sum(j) AS s FROM mid", []), ("FROM top", ["s", "90"]),
            ("CREATE OR REPLACE VIEW base AS SELECT range AS i FROM range(20)", []), ("FROM top", ["s", "90"]),
            ("REFRESH TABLE mid", []), ("FROM top", ["s", "90"]), ("DROP VIEW base", []),
            ("REFRESH TABLE mid", []), ("FROM top", ["s", "90"]), ("CACHE TABLE top", []),
            ("UNCACHE TABLE mid", []), ("FROM top", ["s", "90"]), ("REFRESH TABLE top", []),
            ("FROM top", ["s", "90"]), ("CACHE TABLE mid AS SELECT 1 AS j", []), ("FROM top", ["s", "90"]),
            ("DROP VIEW top", []), ("CLEAR CACHE", []), ("SHOW TABLES", ["name,kind"]))


def describe_computes_nothing(place):
    talk = Conversation(place, "--timing")
    talk.ask(HELD.replace("CACHE", "CACHE LAZY"))
    for sql in ("DESCRIBE h", "DESC SELECT i, r FROM h", "EXPLAIN DESCRIBE h", "EXPLAIN FROM h"):
        has("\n".join(talk.ask(sql)), "i")
        row = dict(zip(*[line.split(",") for line in talk.ask("SHOW CACHE")[:2]]))
        same((row["state"], row["generation"]), ("declared", "0"), sql)
    has(talk.ask("SUMMARIZE h")[-1], "1 held result filled")
    has(talk.ask("DESCRIBE h")[-1], "1 held result hit")
    talk.end()


def held_order_and_zone_are_of_when_it_was_computed(place):
    rows = "SELECT * FROM (VALUES (2), (NULL), (1)) t(x) ORDER BY x"
    answers(place, (f"CACHE TABLE s AS {rows}", []), ("SET sql.default_null_order = 'nulls_first'", []),
            ("FROM s", ["x", "1", "2", ""]), ("FROM s ORDER BY x", ["x", "", "1", "2"]),
            ("SET sql.time_zone = 'UTC'", []),
            ("CACHE TABLE z AS SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' AS t, t::VARCHAR AS v", []),
            ("SET sql.time_zone = 'Asia/Tokyo'", []),
            ("FROM z", ["t,v", "2024-01-01 09:00:00+09,2024-01-01 00:00:00+00"]))


def names_that_are_taken_or_not_there(place):
    for before, sql, code, hint in (
            (HELD, "CACHE TABLE h AS SELECT 1", "NAME_EXISTS", "UNCACHE TABLE h"),
            (HELD, "CACHE TABLE h", "NAME_EXISTS", "UNCACHE TABLE h"),
            (HELD, "CREATE VIEW h AS SELECT 1", "NAME_EXISTS", "OR REPLACE"),
            ("CREATE VIEW v AS SELECT 1", "CACHE TABLE v AS SELECT 1", "NAME_EXISTS", "DROP VIEW v"),
            ("CREATE VIEW v AS SELECT 1", "UNCACHE TABLE v", "TABLE_NOT_FOUND", "v is a view that is not cached"),
            (HELD, "UNCACHE TABLE hh", "TABLE_NOT_FOUND", "did you mean h?"),
            (HELD, "DROP TABLE h", "STATEMENT_REFUSED", "UNCACHE TABLE"),
            (HELD, "CREATE VIEW p AS PIVOT h ON i USING count(*)", "UNSUPPORTED", "IN (")):
        done = place.sql("-c", before, "-c", sql)
        same((done.status, done.out), (1, ""), sql)
        has(done.err, code, hint)
        place.check_clean()


main([common_table_expression_hides_what_is_outside, held_result_may_stand_anywhere, odd_names_are_kept_by_holding,
      view_keeps_what_it_was_made_of, describe_computes_nothing, held_order_and_zone_are_of_when_it_was_computed,
      names_that_are_taken_or_not_there])
