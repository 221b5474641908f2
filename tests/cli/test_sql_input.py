#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Where statements come from, in what order they run, and how the command ends: -c, -f,
# standard input as a conversation, options, exit statuses.
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from command import HOLDFAST, Conversation, check, has, main, same  # noqa: E402


def command_line(*arguments):
    done = subprocess.run([HOLDFAST, *arguments], capture_output=True, text=True, timeout=240)
    return done.returncode, done.stdout, done.stderr


def version_names_both(place):
    status, out, _ = command_line("--version")
    same(status, 0)
    has(out, "holdfast 0.1.0", "DuckDB v1.5.5")


def help_helps(place):
    for arguments in (["--help"], ["help"], ["-h"]):
        status, out, _ = command_line(*arguments)
        same(status, 0)
        has(out, "Usage: holdfast", "sql", "--version")
    for arguments in (["sql", "--help"], ["help", "sql"], ["sql", "-c", "SELECT 1", "-h"]):
        status, out, _ = command_line(*arguments)
        same(status, 0)
        has(out, "--format FORMAT", "--allow-path DIR", "Exit status", "docs/sql.md")


def wrong_usage_is_2_and_says_what_is_near(place):
    for arguments, parts in ((["squl"], ["unknown command squl", "holdfast sql"]),
                             ([], ["Usage"]),
                             (["--verzion"], ["unknown option --verzion", "--version"]),
                             (["sql", "--formt", "csv"], ["unknown option --formt", "--format"]),
                             (["sql", "-z"], ["unknown option -z", "--help"]),
                             (["sql", "--format", "xml"], ["unknown format xml", "csv"]),
                             (["sql", "-c"], ["value is missing", "-c"]),
                             (["sql", "--timing=yes"], ["takes no value", "--timing"]),
                             (["sql", "select 1"], ["unexpected argument select 1", "--help"]),
                             (["sql", "--set", "x"], ["KEY=VALUE"]),
                             (["sql", "--set", "thread=3", "-c", "SELECT 1"], ["SETTING_UNKNOWN", "threads"]),
                             (["sql", "--threads", "none", "-c", "SELECT 1"], ["SETTING_VALUE", "threads"]),
                             (["sql", "--memory", "3 parsecs", "-c", "SELECT 1"], ["SETTING_VALUE", "memory"]),
                             (["sql", "--allow-path", "/no/such/place", "-c", "SELECT 1"], ["/no/such/place", "hint"])):
        status, out, err = command_line(*arguments)
        same((status, out), (2, ""), f"{arguments}: {err}")
        has(err, *parts)


def statements_run_in_the_order_given(place):
    script = place.write("two.sql", "-- a comment; with a semicolon\nSELECT 'b' AS x;\n\nSELECT 'c' AS x")
    done = place.sql("-c", "SELECT 'a' AS x; ;", "-f", script, "-c", "SELECT ';' AS x")
    same((done.status, done.out), (0, "x\na\nx\nb\nx\nc\nx\n;\n"), done.err)
    same(place.sql("-f", "-", stdin="SELECT 5 AS x").out, "x\n5\n")
    place.check_clean()


def options_take_their_values_in_either_form(place):
    same(place.sql("--format=json", "-cSELECT 1 AS a").out, '{"a":1}\n')


def first_failure_ends_a_script(place):
    done = place.sql("-c", "SELECT 1 AS a; SELECT no_such; SELECT 2 AS b", "-c", "SELECT 3 AS c")
    same((done.status, done.out), (1, "a\n1\n"))
    script = place.write("fails.sql", "SELECT 1 AS a;\n\nSELECT a,\n  no_such\nFROM (SELECT 1 AS a);\nSELECT 2;\n")
    done = place.sql("-f", script)
    same((done.status, done.out), (1, "a\n1\n"))
    has(done.err, "COLUMN_NOT_FOUND", "fails.sql:4:   no_such\n")
    done = place.sql(stdin="SELECT 1 AS a;\nSELECT\n  no_such;\nSELECT 2;\n")
    same((done.status, done.out), (1, "a\n1\n"))
    has(done.err, "line 3:   no_such;\n")


def script_that_is_not_there(place):
    done = place.sql("-f", place.path("absent.sql"))
    same((done.status, done.out), (1, ""))
    has(done.err, "FILE_NOT_FOUND", "absent.sql")
    place.check_clean()


def script_with_a_nul_byte(place):
    with open(place.path("nul.sql"), "wb") as file:
        file.write(b"SELECT 1 AS a;\nSELECT 2\0;")
    done = place.sql("-f", place.path("nul.sql"))
    same((done.status, done.out), (1, "a\n1\n"))
    has(done.err, "SYNTAX", "NUL")


def answers_come_before_the_end_of_input(place):
    talk = Conversation(place)
    same(talk.ask("SELECT 6 * 7 AS answer"), ["answer", "42"])
    same(talk.ask("CREATE VIEW v AS SELECT range AS n FROM range(5)"), [])
    same(talk.ask("SELECT sum(n) AS s\n\n FROM v"), ["s", "10"])
    same(talk.end(), (0, ""))
    place.check_clean()


def last_statement_needs_no_semicolon(place):
    same(place.sql(stdin="SELECT 1 AS a; SELECT 2 AS b").out, "a\n1\nb\n2\n")
    same(place.sql(stdin="SELECT 3 AS c").out, "c\n3\n")
    same((place.sql(stdin="").status, place.sql(stdin="\n -- nothing\n").out), (0, ""))


def settings_reach_the_session(place):
    done = place.sql("--threads", "1", "--memory", "512MiB", "--set", "sql.time_zone=Asia/Tokyo", "-c",
                     "SHOW threads", "-c", "SHOW memory", "-c",
                     "SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' AS t", "--format", "json")
    same(done.status, 0, done.err)
    has(done.out, '"value":"1"', '"value":"512MiB"', "2024-01-01 09:00:00+09")


def timing_tells_time_and_rows(place):
    path = place.write("three.csv", "n\n1\n2\n3\n")
    done = place.sql("--timing", "-c", f"SELECT sum(n) AS s FROM '{path}'")
    same(done.out, "s\n6\n")
    has(done.err, "time: 0.", " s, 3 source rows")
    same(place.sql("-c", "SELECT 1 AS a").err, "")


def output_that_fails_is_an_error(place):
    with open("/dev/full", "w") as full:
        done = subprocess.run(place.arguments(["-c", "SELECT 1"]), stdout=full, stderr=subprocess.PIPE, text=True,
                              env=place.environment(), timeout=240)
    same(done.returncode, 1)
    has(done.stderr, "cannot write to standard output", "No space left")
    place.check_clean()


def closed_descriptors_are_errors(place):
    def run(script):
        done = subprocess.run(["bash", "-c", script, "bash", *place.arguments([])], capture_output=True, text=True,
                              env=place.environment(), timeout=240)
        return done.returncode, done.stdout, done.stderr
    status, _, err = run('"$@" -c "SELECT 1" >&-')
    same(status, 1)
    has(err, "cannot write to standard output")
    status, _, err = run('"$@" <&-')
    same(status, 1)
    has(err, "cannot read standard input")
    same(run('"$@" -c "SELECT 1 AS a" 2>&-'), (0, "a\n1\n", ""))
    place.check_clean()


main([version_names_both, help_helps, wrong_usage_is_2_and_says_what_is_near, statements_run_in_the_order_given,
      options_take_their_values_in_either_form, first_failure_ends_a_script, script_that_is_not_there,
      script_with_a_nul_byte, answers_come_before_the_end_of_input, last_statement_needs_no_semicolon,
      settings_reach_the_session, timing_tells_time_and_rows, output_that_fails_is_an_error,
      closed_descriptors_are_errors])
