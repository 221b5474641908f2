#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The interactive shell at a pseudo-terminal: prompts, statements over several lines,
# backslash commands, completion, history, Ctrl-C, Ctrl-D, the progress bar.
import os
import signal
import stat
import sys
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from command import Terminal, check, has, main, same  # noqa: E402

PROMPT = r"holdfast> $"
SLOW = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE (a.range * b.range) % 7 = 3"


def ask(terminal, line, until=PROMPT):
    terminal.type(line + "\r")
    return terminal.read_until(until)


def leave(terminal):
    terminal.type("\\q\r")
    same(terminal.end(), 0, "exit status")


def statement_over_lines_is_one(place):
    terminal = Terminal(place)
    has(terminal.read_until(PROMPT), "holdfast 0.", "\\? for help")
    ask(terminal, "SELECT 40 + 2", r"     \.\.\.> $")
    text = ask(terminal, "  AS answer, ';' AS semicolon;")
    has(text, " answer | semicolon", "     42 | ;", "(1 row)", "time: ")
    leave(terminal)
    place.check_clean()


def error_keeps_the_shell(place):
    terminal = Terminal(place)
    terminal.read_until(PROMPT)
    has(ask(terminal, "SELECT 1 +;"), "error: SYNTAX", "^")
    has(ask(terminal, "SELECT 7 AS seven;"), "seven")
    leave(terminal)


def backslash_commands(place):
    terminal = Terminal(place)
    terminal.read_until(PROMPT)
    has(ask(terminal, "\\?"), "\\timing", "CACHE [LAZY] TABLE")
    has(ask(terminal, "\\timing"), "timing: off")
    check("time:" not in ask(terminal, "SELECT 1;"), "time is told though timing is off")
    has(ask(terminal, "\\timing on"), "timing: on")
    has(ask(terminal, "\\format json"), "format: json")
    has(ask(terminal, "SELECT 1 AS a;"), '{"a":1}')
    has(ask(terminal, "\\format xml"), "table, csv and json")
    has(ask(terminal, "\\nonsense"), "unknown command")
    terminal.type("exit\r")
    same(terminal.end(), 0, "exit status")


def completion_of_keywords_names_and_files(place):
    place.write("numbers_one.csv", "n\n1\n2\n")
    os.mkdir(place.path("numbers_dir"))
    terminal = Terminal(place)
    terminal.read_until(PROMPT)
    ask(terminal, "CREATE VIEW wanderers AS SELECT 5 AS five;")
    has(ask(terminal, "SEL\tfive FROM wand\t;"), "five", "    5")
    has(ask(terminal, "sel\tsum(n) AS total FROM 'numbers_o\t;"), "total", "    3")
    terminal.type("SELECT 1 FROM 'numbers_\t\t")
    has(terminal.read_until(r"numbers_one\.csv.*numbers_$"), "numbers_dir/")
    terminal.type("\x03")
    terminal.read_until(PROMPT)
    terminal.type("\\ti\ton\r")
    has(terminal.read_until(PROMPT), "timing: on")
    leave(terminal)


def history_is_kept_and_private(place):
    terminal = Terminal(place)
    terminal.read_until(PROMPT)
    ask(terminal, "SELECT 1234 AS remembered;")
    leave(terminal)
    path = place.path(".holdfast_history")
    same(stat.S_IMODE(os.stat(path).st_mode), 0o600, "mode of the history")
    terminal = Terminal(place)
    terminal.read_until(PROMPT)
    has(ask(terminal, "\x1b[A"), "remembered", "1234")
    leave(terminal)
    state = place.path("state")
    terminal = Terminal(place, XDG_STATE_HOME=state)
    terminal.read_until(PROMPT)
    ask(terminal, "SELECT 1;")
    leave(terminal)
    check(os.path.exists(os.path.join(state, "holdfast", "history")), "no history in $XDG_STATE_HOME")


def interrupt_cancels_and_the_shell_goes_on(place):
    terminal = Terminal(place)
    terminal.read_until(PROMPT)
    terminal.type("SELECT half of it\r")
    terminal.read_until(r"     \.\.\.> $")
    terminal.type("\x03")
    terminal.read_until(r"\^C\r\n.*" + PROMPT)
    terminal.type(SLOW + ";\r")
    terminal.read_until(r"\[[=> ]*\]")  # the progress bar: it runs
    terminal.type("\x03")
    terminal.read_until("query cancelled.*" + PROMPT)
    has(ask(terminal, "SELECT 11 AS eleven;"), "eleven")
    terminal.type("\x04")
    same(terminal.end(), 0, "exit status")
    place.check_clean()


def typed_ahead_is_kept(place):
    terminal = Terminal(place)
    terminal.read_until(PROMPT)
    terminal.type(SLOW + ";\r")
    terminal.read_until(r"\[[=> ]*\]")
    terminal.type("SELECT 11 AS elev\x04en;\r\x04")  # Ctrl-D: nothing amid a line, the end on an empty one
    os.kill(terminal.pid, signal.SIGINT)  # typing Ctrl-C would throw away what was typed
    terminal.read_until(r"query cancelled.*\r\n +eleven\r\n")
    same(terminal.end(), 0, "exit status")


def ctrl_space_is_no_end(place):
    terminal = Terminal(place)
    terminal.read_until(PROMPT)
    terminal.type("\x00SELECT 1\x00 AS one;\r")
    has(terminal.read_until(PROMPT), " one")
    leave(terminal)


def modes_of_the_terminal_are_given_back(place):
    terminal = Terminal(place)
    terminal.read_until(PROMPT)
    ask(terminal, "SELECT 1;")
    same(terminal.modes()[6][termios.VEOF], b"\0", "Ctrl-D while the shell runs")
    terminal.type("\x04")
    status, modes = terminal.end_with_modes()
    same(status, 0, "exit status")
    same(modes[6][termios.VEOF], b"\x04", "Ctrl-D")
    check(modes[3] & termios.ICANON, "the terminal is left raw")


def progress_can_be_left_out(place):
    terminal = Terminal(place, "--no-progress")
    terminal.read_until(PROMPT)
    text = ask(terminal, "SELECT count(*) AS n FROM range(12000) a, range(12000) b WHERE (a.range * b.range) % 7 = 3;")
    has(text, " n ")
    check("[=" not in text and "[>" not in text, "a progress bar is drawn")
    leave(terminal)


def terminate_ends_and_cleans(place):
    terminal = Terminal(place)
    terminal.read_until(PROMPT)
    ask(terminal, "CACHE TABLE held AS SELECT range AS n FROM range(1000);")
    os.kill(terminal.pid, signal.SIGTERM)
    same(terminal.end(), 128 + signal.SIGTERM, "exit status")
    place.check_clean()


main([statement_over_lines_is_one, error_keeps_the_shell, backslash_commands, completion_of_keywords_names_and_files,
      history_is_kept_and_private, interrupt_cancels_and_the_shell_goes_on, typed_ahead_is_kept,
      ctrl_space_is_no_end, modes_of_the_terminal_are_given_back, progress_can_be_left_out,
      terminate_ends_and_cleans])
