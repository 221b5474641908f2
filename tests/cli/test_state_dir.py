#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# State directories by the command: what goes on after an end of any kind, who may open one,
# listing and dropping, and disks that are full or cannot be written.
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import duckdb  # noqa: E402
from command import DEADLINE_S, HOLDFAST, Conversation, Place, Result, check, has, main, same  # noqa: E402

SUM = "SELECT sum(n)::BIGINT AS s FROM held"
ANSWER = ["s", "1249975000"]


class State(Place):
    """A place whose sessions are those of a state directory, with a space and a letter beyond ASCII in its path."""

    def __init__(self, place, name="staté dir"):
        self.dir = place.dir
        self.state = place.path(name)
        self.work = os.path.join(self.state, "work")

    def arguments(self, arguments):
        return [HOLDFAST, "sql", "--state-dir", self.state, *arguments]

    def cache(self, *arguments):
        done = subprocess.run([HOLDFAST, "cache", *arguments, "--state-dir", self.state], text=True,
                              capture_output=True, timeout=DEADLINE_S, env=self.environment())
        return Result(done.returncode, done.stdout, done.stderr)

    def listed(self):
        done = self.cache("ls", "--json")
        same(done.status, 0, done.err)
        return [json.loads(line) for line in done.out.splitlines()]

    def blocks(self):
        return [path for path in self.left() if os.path.basename(path) == "index" and "/trash/" not in path]

    def journal(self):
        return os.path.join(self.state, "journal.db")

    def hold(self):
        """Holds a table over a file; returns the file's path."""
        path = duckdb.write_parquet(self.path("in.parquet"), "SELECT range AS n FROM range(50000)")
        done = self.sql("-c", f"CACHE TABLE held AS SELECT * FROM '{path}'")
        same((done.status, done.out), (0, ""), done.err)
        return path

    def is_hit(self):
        done = self.sql("--timing", "-c", SUM)
        same((done.status, done.out.splitlines()), (0, ANSWER), done.err)
        has(done.err, "1 held result hit")
        check("source rows" not in done.err, done.err)


def hold_is_a_hit_after_a_clean_end(place):
    state = State(place)
    os.remove(state.hold())
    state.is_hit()
    state.is_hit()
    same(len(state.blocks()), 1)


def hold_is_a_hit_after_a_kill(place):
    state = State(place)
    path = duckdb.write_parquet(state.path("in.parquet"), "SELECT range AS n FROM range(50000)")
    talk = Conversation(state)
    same(talk.ask(f"CACHE TABLE held AS SELECT * FROM '{path}'"), [])
    talk.process.send_signal(signal.SIGKILL)
    talk.process.wait(DEADLINE_S)
    os.remove(path)
    state.is_hit()


def interrupt_ends_the_statement_and_keeps_the_rest(place):
    state = State(place)
    os.remove(state.hold())
    talk = Conversation(state)
    same(talk.ask("SELECT 1 AS a"), ["a", "1"])
    talk.process.stdin.write("CACHE TABLE endless AS SELECT sum(a.range * b.range) AS s FROM range(1000000) a, "
                             "range(1000000) b;\n")
    talk.process.stdin.flush()
    talk.process.send_signal(signal.SIGTERM)
    talk.process.stdin.close()
    talk.process.stdout.read()
    same(talk.process.wait(DEADLINE_S), 128 + signal.SIGTERM)
    state.is_hit()
    same([row["name"] for row in state.listed()], ["held"])


def directory_in_use_names_the_process(place):
    state = State(place)
    state.hold()
    talk = Conversation(state)
    same(talk.ask(SUM), ANSWER)
    for done in (state.sql("-c", "SELECT 1"), state.cache("ls")):
        same((done.status, done.out), (1, ""))
        has(done.err, "STATE_DIR", f"in use by another process ({talk.process.pid})", "--state-dir")
    same(talk.ask(SUM), ANSWER)
    same(talk.end(), (0, ""))
    state.is_hit()


def directory_that_was_moved_goes_on(place):
    state = State(place)
    os.remove(state.hold())
    moved = State(place, "elsewhere")
    os.rename(state.state, moved.state)
    moved.is_hit()
    copied = State(place, "copied")
    shutil.copytree(moved.state, copied.state)
    copied.is_hit()
    moved.is_hit()


def listing_and_dropping(place):
    state = State(place)
    state.hold()
    done = state.sql("-c", "CREATE VIEW v AS SELECT 1 AS a", "-c", "CACHE TABLE v", "-c", SUM)
    same(done.status, 0, done.err)
    rows = state.listed()
    same([(row["name"], row["state"], row["rows"], row["generation"]) for row in rows],
         [("held", "materialised", 50000, 1), ("v", "materialised", 1, 1)])
    same(rows[0]["hits"], 1)
    has(state.cache("ls").out, "held", "materialised", "(2 rows)")
    done = state.cache("drop", "nobody")
    same((done.status, done.out), (1, ""))
    has(done.err, "TABLE_NOT_FOUND", "nobody")
    done = state.cache("drop", rows[0]["cache_id"])
    same((done.status, done.out, done.err), (0, "", ""))
    same([row["name"] for row in state.listed()], ["v"])
    same(len(state.blocks()), 1)
    same(state.cache("drop", "v").status, 0)
    same(state.sql("-c", "SHOW TABLES").out.splitlines(), ["name,kind", "v,view"])
    state.hold()
    same(state.cache("drop", "--all").status, 0)
    same(state.listed(), [])
    same(state.left(), [os.path.join(state.work, "holdfast.id")])


def wrong_usage_says_what_is_right(place):
    state = State(place)
    done = state.cache("ls")
    same(done.status, 1)
    has(done.err, "no state directory", "holdfast sql --state-dir")
    check(not os.path.exists(state.state), "it was made")
    for arguments in (("drop",), ("drop", "a", "--all"), ("drop", "a", "b"), ("list",), ("ls", "x"), ("ls", "--al")):
        done = state.cache(*arguments)
        same((done.status, done.out), (2, ""), f"{arguments}")
        has(done.err, "hint: ")
    done = subprocess.run([HOLDFAST, "cache", "ls"], text=True, capture_output=True)
    same(done.returncode, 2)
    has(done.stderr, "--state-dir")


def work_directory_is_nobody_elses(place):
    state = State(place)
    state.hold()
    done = subprocess.run([HOLDFAST, "sql", "--work-dir", state.work, "-c", "SELECT 1"], text=True, capture_output=True,
                          env=state.environment())
    same((done.returncode, done.stdout), (1, ""))
    has(done.stderr, "WORK_DIR", "kept for a state directory")
    state.is_hit()


def work_directory_elsewhere_is_kept_too(place):
    state = State(place)
    os.remove(state.hold())
    other = place.path("other work")
    done = state.sql("--work-dir", other, "-c", "CACHE TABLE more AS SELECT 7 AS n", "-c", "SELECT n FROM more")
    same(done.out, "n\n7\n", done.err)
    done = state.sql("--work-dir", other, "--timing", "-c", "SELECT n FROM more")
    same(done.out, "n\n7\n", done.err)
    has(done.err, "1 held result hit")


def change(state, sql):
    with sqlite3.connect(state.journal()) as journal:
        journal.execute(sql)
    journal.close()


def journal_that_cannot_be_read_is_refused(place):
    state = State(place)
    state.hold()
    whole = place.path("whole.db")
    shutil.copy(state.journal(), whole)
    for sql, message in (("PRAGMA user_version=2", "format version 2"),
                         ("UPDATE record SET body = body || x'00' WHERE kind = 5", "does not match its checksum"),
                         ("UPDATE record SET job = job + 1 WHERE kind = 5", "does not match its checksum"),
                         ("PRAGMA application_id=1", "another program"),
                         ("DROP TABLE record", "the journal"),
                         ("DELETE FROM meta", "has no id")):
        change(state, sql)
        for done in (state.sql("-c", "SELECT 1"), state.cache("ls")):
            same((done.status, done.out), (1, ""), sql)
            has(done.err, "STATE_DIR", message, "hint: ")
        shutil.copy(whole, state.journal())
    state.is_hit()


def mounted(directory, size):
    if os.geteuid() != 0:
        return False
    os.mkdir(directory)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", directory], capture_output=True)
    return made.returncode == 0


def fill(path):
    filler = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(filler, b"x" * 4096) == 4096:
            pass
    except OSError:
        pass
    os.close(filler)


def disk_that_is_full_or_read_only(place):
    small = place.path("small")
    if not mounted(small, "12m"):
        print("skipped: a small file system cannot be mounted here")
        return
    state = State(place, "small/state")
    wide = "SELECT range AS n, md5(range::VARCHAR) AS h FROM range(2000000)"
    try:
        os.remove(state.hold())
        done = state.sql("-c", f"CACHE LAZY TABLE wide AS {wide}", "-c", "SELECT sum(n) AS s, count(h) AS c FROM wide")
        same((done.status, done.out), (0, "s,c\n1999999000000,2000000\n"), done.err)
        has(done.err, "warning: ")
        state.is_hit()
        same(len(state.blocks()), 1)
        fill(os.path.join(small, "filler"))
        done = state.sql("-c", "SELECT 1 AS a")  # it may need room to open, and says so then
        check(done.out == "a\n1\n" or "DISK_FULL" in done.err or "STATE_DIR" in done.err, done.err)
        os.remove(os.path.join(small, "filler"))
        state.is_hit()
        subprocess.run(["mount", "-o", "remount,ro", small], check=True)
        done = state.sql("-c", "SELECT 1")
        same((done.status, done.out), (1, ""))
        has(done.err, "STATE_DIR", "hint: make it writable")
        subprocess.run(["mount", "-o", "remount,rw", small], check=True)
        state.is_hit()
    finally:
        subprocess.run(["umount", small], check=True)


main([hold_is_a_hit_after_a_clean_end, hold_is_a_hit_after_a_kill, interrupt_ends_the_statement_and_keeps_the_rest,
      directory_in_use_names_the_process, directory_that_was_moved_goes_on, listing_and_dropping,
      wrong_usage_says_what_is_right, work_directory_is_nobody_elses, work_directory_elsewhere_is_kept_too,
      journal_that_cannot_be_read_is_refused, disk_that_is_full_or_read_only])
