# SPDX-License-Identifier: Apache-2.0
# What the checks of tools/lint share: the files of the tree, C text without comments and
# strings, the list of exceptions, and the way a problem is printed.
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = [line for line in open(os.path.join(ROOT, "tools/lint/folders")).read().split("\n")
           if re.match(r"[a-z]", line)]


def files(*patterns):
    """Paths that match one of the regular expressions: tracked, or new and not ignored."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split("\n")
    wanted = [re.compile(pattern) for pattern in patterns]
    return sorted({path for path in listed if any(p.match(path) for p in wanted)
                   and os.path.isfile(os.path.join(ROOT, path))})


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


_C_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def blank(text, strings=True):
    """C text in which comments (and the insides of strings) are spaces; lines stay where they are."""
    def replace(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token[0] + " " * (len(token) - 2) + token[-1] if strings else token
        return re.sub(r"[^\n]", " ", token)
    return _C_TOKEN.sub(replace, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


class Report:
    """Problems of one check. allow.txt rows `check subject reason` excuse a subject; a row that
    excuses nothing is a problem itself, so the list can only shrink."""

    def __init__(self, check):
        self.check = check
        self.problems = []
        self.allowed = {}
        for number, line in enumerate(read("tools/lint/allow.txt").split("\n"), 1):
            fields = line.split(None, 2)
            if not fields or line.startswith("#") or fields[0] != check:
                continue
            if len(fields) < 3:
                self.problems.append(f"tools/lint/allow.txt:{number}: a row needs check, subject and reason")
                continue
            self.allowed[fields[1]] = False

    def add(self, path, line, message, subject=None):
        for key in (subject, path):
            if key in self.allowed:
                self.allowed[key] = True
                return
        self.problems.append(f"{path}:{line}: {message}")

    def finish(self, stale=True):
        if stale:
            self.problems += [f"tools/lint/allow.txt: {self.check} {subject} excuses nothing: remove the row"
                              for subject, used in self.allowed.items() if not used]
        print("\n".join(self.problems) if self.problems else "", end="\n" if self.problems else "")
        sys.exit(1 if self.problems else 0)
