#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Signals and closed pipes in scripts: SIGINT and SIGTERM in the middle of a query, while
# waiting for input, and in the middle of printing; a reader that goes away.
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from command import DEADLINE_S, check, has, main, same  # noqa: E402

SLOW = "SELECT count(*) AS n FROM range(100000) a, range(100000) b WHERE (a.range * b.range) % 7 = 3;\n"


def begin(place, **options):
    """A process that has answered once: it is up, and waits for more input."""
    process = place.start("--format", "csv", **options)
    process.stdin.write("CACHE TABLE held AS SELECT range AS n FROM range(1000);\nSELECT 'up' AS a;\n")
    process.stdin.flush()
    same([process.stdout.readline(), process.stdout.readline()], ["a\n", "up\n"])
    return process


def wait_for_work(process, work=30):
    """Waits until the process has used processor time for a while: the query runs."""
    def ticks():
        with open(f"/proc/{process.pid}/stat") as file:
            return sum(int(field) for field in file.read().rsplit(")", 1)[1].split()[11:13])
    start = ticks()
    while ticks() - start < work:
        check(process.poll() is None, "the query ended by itself")


def ends_by(place, number, running):
    process = begin(place)
    if running:
        process.stdin.write(SLOW)
        process.stdin.flush()
        wait_for_work(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=DEADLINE_S)
    same((process.returncode, out, err), (128 + number, "", "cancelled\n"))
    place.check_clean()
    check(not os.path.exists(place.work), "the work directory is left")


def interrupt_in_a_query(place):
    ends_by(place, signal.SIGINT, True)


def terminate_in_a_query(place):
    ends_by(place, signal.SIGTERM, True)


def hangup_in_a_query(place):
    ends_by(place, signal.SIGHUP, True)


def interrupt_that_is_ignored_stays_ignored(place):
    process = begin(place, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate("SELECT 1 AS a;\n", timeout=DEADLINE_S)
    same((process.returncode, out, err), (0, "a\n1\n", ""))


def interrupt_while_waiting_for_input(place):
    ends_by(place, signal.SIGINT, False)


def interrupt_in_a_fill(place):
    process = begin(place)
    process.stdin.write("CACHE TABLE slow AS " + SLOW)
    process.stdin.flush()
    wait_for_work(process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=DEADLINE_S)
    same(process.returncode, 130, err)
    check(not os.path.exists(place.work), "the work directory is left")


def interrupt_at_any_moment(place):
    """After more and more processor time: planning, filling, reading back."""
    script = ("CACHE TABLE a AS SELECT range AS n, md5(range::VARCHAR) AS h FROM range(300000);" +
              "CACHE LAZY TABLE b AS SELECT h, n FROM a ORDER BY h; SELECT max(h) AS m FROM b; REFRESH TABLE b;" +
              "SELECT min(h) AS m FROM b; SELECT 1 AS a; SELECT count(*) AS n FROM a JOIN b USING (n);" * 50)
    for moment in range(16):
        process = place.start("--format", "csv", "-c", "SELECT 'up' AS a", "-c", script)
        same([process.stdout.readline(), process.stdout.readline()], ["a\n", "up\n"])
        wait_for_work(process, 3 * moment)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_S)
        same((process.returncode, err), (130, "cancelled\n"), f"moment {moment}")
        check(not os.path.exists(place.work), f"moment {moment}: the work directory is left")


def killed_process_is_cleaned_up_after(place):
    for moment in (0, 20, 60):
        process = begin(place)
        process.stdin.write("CACHE TABLE slow AS SELECT range AS n, md5(range::VARCHAR) AS h FROM range(50000000);\n")
        process.stdin.flush()
        wait_for_work(process, moment)
        process.kill()
        process.communicate(timeout=DEADLINE_S)
        check(place.left(), "nothing was there to be cleaned")
        done = place.sql("--format", "csv", "-c", "CACHE TABLE held AS SELECT 1 AS a", "-c", "FROM held")
        same((done.status, done.out, done.err), (0, "a\n1\n", ""))
        check(not os.path.exists(place.work) or not os.listdir(place.work), "files of the killed process are left")


def interrupt_while_printing(place):
    process = place.start("-c", "SELECT range AS n FROM range(5000000)")
    process.stdout.readline()  # it prints now, and blocks as soon as the pipe is full
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=DEADLINE_S)
    same(process.returncode, 130, err)
    place.check_clean()


def closed_pipe_ends_quietly(place):
    for form in ("csv", "json", "arrow", "table"):
        process = place.start("--format", form, "-c", "SELECT range AS n FROM range(2000000)", "-c",
                              "SELECT range AS n FROM range(2000000)")
        process.stdout.buffer.read(3)
        process.stdout.close()
        err = process.stderr.read()
        process.stdin.close()
        status = process.wait(DEADLINE_S)
        same(err, "", form)
        check(status == 128 + signal.SIGPIPE or (form == "table" and status in (0, 141)), f"{form}: status {status}")
        place.check_clean()


def head_in_a_shell_pipeline(place):
    done = subprocess.run(["bash", "-c", '"$@" | head -2', "bash", *place.arguments(["-c", "FROM range(1000000)"])],
                          capture_output=True, text=True, timeout=DEADLINE_S, env=place.environment())
    same((done.stdout, done.stderr), ("range\n0\n", ""))


main([interrupt_in_a_query, terminate_in_a_query, hangup_in_a_query, interrupt_that_is_ignored_stays_ignored,
      interrupt_while_waiting_for_input, interrupt_in_a_fill, interrupt_at_any_moment,
      killed_process_is_cleaned_up_after,
      interrupt_while_printing, closed_pipe_ends_quietly, head_in_a_shell_pipeline])
