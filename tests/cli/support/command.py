# SPDX-License-Identifier: Apache-2.0
# What the tests of the command share: running it in a work directory of its own, checks
# that are counted, and a session at a pseudo-terminal. Each test is a process that calls
# main(cases) with its functions; a case fails by an exception.
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
import traceback

HOLDFAST = os.environ["HOLDFAST"]
SOURCE = os.environ.get("HOLDFAST_SOURCE", os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))))
DEADLINE_S = 240  # of one run; a busy machine may be ten times slower


class Failed(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failed(message)


def same(found, expected, what=""):
    check(found == expected, f"{what}\n  found    {found!r}\n  expected {expected!r}")


def has(text, *parts):
    for part in parts:
        check(part in text, f"not in the text: {part!r}\n{text}")


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __repr__(self):
        return f"status {self.status}\nstdout: {self.out}\nstderr: {self.err}"


class Place:
    """A temporary directory with a work directory in it, both the case's own."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="hf-cli-")
        self.work = os.path.join(self.dir, "work")

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def environment(self, **more):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_WORK") and k != "COLUMNS"}
        return {**kept, "HOME": self.dir, "TERM": "dumb", **more}

    def arguments(self, arguments):
        return [HOLDFAST, "sql", "--work-dir", self.work, *arguments]

    def sql(self, *arguments, stdin="", text=True, cwd=None, **environment):
        """Runs `holdfast sql` to its end."""
        done = subprocess.run(self.arguments(arguments), input=stdin if text else stdin.encode(), text=text,
                              capture_output=True, timeout=DEADLINE_S, cwd=cwd or self.dir,
                              env=self.environment(**environment))
        return Result(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments, **options):
        """Starts `holdfast sql` with pipes."""
        return subprocess.Popen(self.arguments(arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=options.pop("stderr", subprocess.PIPE), text=True, cwd=self.dir,
                                env=self.environment(), **options)

    def left(self):
        """Files left in the work directory, but for its lock."""
        return [os.path.join(d, f) for d, _, files in os.walk(self.work) for f in files if f != "holdfast.lock"]

    def check_no_blocks(self):
        """Files of answers go a moment after the answer: waits for that."""
        end = time.monotonic() + DEADLINE_S
        while self.left():
            check(time.monotonic() < end, f"files are left: {self.left()}")

    def check_clean(self):
        left = os.listdir(self.work) if os.path.exists(self.work) else []
        check(not left, f"left in the work directory: {self.left() or left}")


class Conversation:
    """Statements sent one by one through pipes; each answer is read before the next is sent."""

    def __init__(self, place, *arguments):
        self.process = place.start("--format", "csv", *arguments, stderr=subprocess.STDOUT)
        self.timed = "--timing" in arguments
        self.sent = 0

    def ask(self, sql):
        """The lines of the answer; errors are among them."""
        self.sent += 1
        mark = f"mark {self.sent}"
        self.process.stdin.write(f"{sql};\nSELECT '{mark}' AS mark;\n")
        self.process.stdin.flush()
        lines = []
        while True:
            line = self.process.stdout.readline()
            if line == "" or line == mark + "\n":
                break
            lines.append(line.rstrip("\n"))
        if lines and lines[-1] == "mark":
            lines.pop()
            if self.timed:
                self.process.stdout.readline()  # of the mark
        return lines

    def end(self):
        self.process.stdin.close()
        rest = self.process.stdout.read()
        return self.process.wait(DEADLINE_S), rest


class Terminal:
    """The command at a pseudo-terminal."""

    def __init__(self, place, *arguments, **environment):
        self.seen = ""
        pid, self.fd = pty.fork()
        if pid == 0:
            modes = termios.tcgetattr(0)
            modes[3] &= ~termios.ECHO
            termios.tcsetattr(0, termios.TCSANOW, modes)
            os.chdir(place.dir)
            os.execve(HOLDFAST, place.arguments(arguments), place.environment(**environment))
        self.pid = pid

    def type(self, text):
        os.write(self.fd, text.encode())

    def read_until(self, pattern):
        """Reads until the regular expression matches what came since the last match; returns that text."""
        end = time.monotonic() + DEADLINE_S
        while True:
            match = re.search(pattern, self.seen, re.S)
            if match:
                text, self.seen = self.seen[:match.end()], self.seen[match.end():]
                return text
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            check(ready, f"waited in vain for {pattern!r}; seen: {self.seen!r}")
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            check(data, f"ended before {pattern!r}; seen: {self.seen!r}")
            self.seen += data.decode(errors="replace")

    def modes(self):
        return termios.tcgetattr(self.fd)

    def end(self):
        """The exit status, after the process has ended by itself."""
        return self.end_with_modes()[0]

    def end_with_modes(self):
        """The exit status, and the modes in which the terminal was left."""
        end = time.monotonic() + DEADLINE_S
        while True:
            try:
                ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
                data = os.read(self.fd, 65536) if ready else b""
            except OSError:
                break  # the process has closed the terminal
            self.seen += data.decode(errors="replace")
            if not data:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise Failed(f"it does not end; seen: {self.seen!r}")
        _, status = os.waitpid(self.pid, 0)
        modes = self.modes()
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status), modes


def main(cases):
    """Runs the cases, each in a place of its own; the process fails when one does."""
    failed = 0
    for case in cases:
        place = Place()
        try:
            case(place)
            print("ok    ", case.__name__)
        except Exception as error:  # a failing case must not hide the others
            failed += 1
            print("FAILED", case.__name__, "-", error)
            if not isinstance(error, Failed):
                traceback.print_exc(file=sys.stdout)
        finally:
            shutil.rmtree(place.dir, ignore_errors=True)
    sys.exit(1 if failed else 0)
