#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# 2,000 generated queries: none differs from single-node DuckDB, most are distributed. Half of them by the session's
# scheduler, half by the harness, when it is built, under all its overlays by turns. A failure is printed as SQL.
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from command import HOLDFAST, check, main  # noqa: E402

QUERIES_A_RUN = 250
SEEDS = range(1001, 1009)
DEADLINE_S = 550  # of a run; on an idle machine it takes 15
# Percent of the queries that have an answer. Constants, range() and tables of one row are for one task.
SESSION_FLOOR, OVERLAYS_FLOOR = 62, 50


def run(place, seed, arguments):
    scratch = place.path(f"scratch-{seed}")
    os.makedirs(scratch)
    done = subprocess.run([HOLDFAST, "verify", "--generate", str(QUERIES_A_RUN), "--seed", str(seed), *arguments],
                          text=True, capture_output=True, timeout=DEADLINE_S, env=place.environment(TMPDIR=scratch))
    print(done.stdout[-4000:] if done.returncode != 0 else "\n".join(done.stdout.splitlines()[-2:]))
    check(done.returncode == 0, f"seed {seed} {arguments}: status {done.returncode}: {done.stderr}")
    return [int(n) for n in re.search(r"distributed (\d+), fell back (\d+)\n.*\n\Z", done.stdout).groups()]


def run_all(place, seeds, arguments, floor):
    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(lambda seed: run(place, seed, arguments), seeds))
    distributed, fell_back = (sum(column) for column in zip(*counts))
    print(f"distributed {distributed}, fell back {fell_back}")
    check(100 * distributed >= floor * (distributed + fell_back), f"distributed {distributed}, fell back {fell_back}")
    check(distributed + fell_back >= len(seeds) * QUERIES_A_RUN * 0.9, "too many queries that fail")


def generated_queries_by_the_scheduler_are_right(place):
    run_all(place, SEEDS[:4], ["--tasks", "3"], SESSION_FLOOR)


def generated_queries_under_overlays_are_right(place):
    asked = subprocess.run([HOLDFAST, "verify", "--overlay", "no_such", "-c", "SELECT 1"], capture_output=True, text=True)
    is_built = "needs the harness" not in asked.stderr
    run_all(place, SEEDS[4:], ["--overlay", "all"] if is_built else ["--tasks", "7"], OVERLAYS_FLOOR)


main([generated_queries_by_the_scheduler_are_right,
      generated_queries_under_overlays_are_right])
