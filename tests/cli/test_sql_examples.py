#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Each examples/*.sql runs as its head says, to its end.
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from command import SOURCE, check, main, same  # noqa: E402


def case_of(path):
    def case(place):
        done = place.sql("-f", path, cwd=os.path.dirname(path))
        same((done.status, done.err), (0, ""), path)
        check(done.out.count("\n") > 5, f"{path} says little: {done.out}")
        place.check_clean()
    case.__name__ = os.path.basename(path)
    return case


def examples():
    return sorted(glob.glob(os.path.join(SOURCE, "examples", "*.sql")))


check(examples(), "there are no examples")
main([case_of(path) for path in examples()])
