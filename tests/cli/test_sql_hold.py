#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Holding results through the command: hits read no input, and blocks that were cut, altered
# or removed behind its back never make a wrong answer.
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
import duckdb  # noqa: E402
from command import Conversation, check, has, main, same  # noqa: E402

ANSWER = ["c,s", "200000,19999900000"]
QUERY = "SELECT count(*) AS c, sum(n) AS s FROM held"


def held(place, *arguments):
    path = duckdb.write_parquet(place.path("in.parquet"), "SELECT range AS n, md5(range::VARCHAR) AS h FROM range(200000)")
    talk = Conversation(place, *arguments)
    same(talk.ask(f"CACHE TABLE held AS SELECT * FROM '{path}' WHERE n >= 0"), [])
    same(talk.ask(QUERY), ANSWER)
    return talk, path


def generation(talk):
    lines = talk.ask("SHOW CACHE")
    head = lines[0].split(",")
    same(len(lines), 2, "rows of SHOW CACHE")
    return int(lines[1].split(",")[head.index("generation")])


def hit_reads_no_source(place):
    path = duckdb.write_parquet(place.path("in.parquet"), "SELECT range AS n FROM range(50000)")
    talk = Conversation(place, "--timing")
    talk.ask(f"CACHE LAZY TABLE held AS SELECT * FROM '{path}'")
    has("\n".join(talk.ask("EXPLAIN SELECT count(*) FROM held")), "miss")
    cold = talk.ask("SELECT sum(n) AS s FROM held")
    same(cold[:2], ["s", "1249975000"])
    has("\n".join(cold), "50,000 source rows", "1 held result filled")
    os.rename(path, path + ".away")
    warm = talk.ask("SELECT sum(n) AS s FROM held")
    same(warm[:2], ["s", "1249975000"])
    has("\n".join(warm), "1 held result hit")
    check("source rows" not in "\n".join(warm), warm)
    has("\n".join(talk.ask("EXPLAIN SELECT count(*) FROM held")), "hit")
    talk.ask("UNCACHE TABLE held")
    place.check_no_blocks()
    talk.end()
    place.check_clean()


def damage_each(place, damage):
    """Damages every file of the work directory; those of answers may go meanwhile."""
    damaged = 0
    for path in place.left():
        try:
            damage(path)
            damaged += 1
        except FileNotFoundError:
            pass
    check(damaged > 0, "there are no blocks")


def cut(path):
    os.truncate(path, os.path.getsize(path) // 2)


def damaged_blocks(place, damage):
    talk, _ = held(place)
    damage_each(place, damage)
    same(talk.ask(QUERY), ANSWER)
    same(talk.ask("SELECT count(DISTINCT h) AS d FROM held"), ["d", "200000"])
    check(generation(talk) >= 2, "it was not computed again")
    same(talk.end(), (0, ""))
    place.check_clean()


def cut_blocks_are_computed_again(place):
    damaged_blocks(place, cut)


def altered_blocks_are_computed_again(place):
    def alter(path):
        with open(path, "r+b") as file:
            size = os.path.getsize(path)
            for at in range(size // 7, size, max(1, size // 5)):
                file.seek(at)
                byte = file.read(1)
                file.seek(at)
                file.write(bytes([byte[0] ^ 0x55]))
    damaged_blocks(place, alter)


def removed_blocks_are_computed_again(place):
    damaged_blocks(place, os.unlink)


def damage_without_input_is_an_error(place):
    talk, path = held(place)
    os.unlink(path)
    damage_each(place, cut)
    text = "\n".join(talk.ask(QUERY))
    check(re.search(r"error: (FILE_NOT_FOUND|BLOCK_\w+): ", text), text)
    talk.end()
    place.check_clean()


def uncached_stays_uncached(place):
    talk, _ = held(place)
    same(talk.ask("UNCACHE TABLE held"), [])
    place.check_no_blocks()
    check("TABLE_NOT_FOUND" in "\n".join(talk.ask(QUERY)), "the name of CACHE TABLE … AS is still there")
    talk.end()
    place.check_clean()


def view_that_is_uncached_still_answers(place):
    talk = Conversation(place)
    talk.ask("CREATE VIEW v AS SELECT range AS n FROM range(10)")
    talk.ask("CACHE TABLE v")
    same(talk.ask("SELECT sum(n) AS s FROM v"), ["s", "45"])
    check(place.left(), "nothing is held")
    same(talk.ask("UNCACHE TABLE v"), [])
    same(talk.ask("SELECT sum(n) AS s FROM v"), ["s", "45"])
    place.check_no_blocks()
    same(talk.ask("CLEAR CACHE"), [])
    same(talk.end(), (0, ""))
    place.check_clean()


def held_random_is_drawn_once(place):
    talk = Conversation(place)
    talk.ask("CACHE LAZY TABLE r AS SELECT random() AS x FROM range(100)")
    first = talk.ask("SELECT sum(x) AS s FROM r")
    same(talk.ask("SELECT sum(x) AS s FROM r"), first)
    talk.ask("REFRESH TABLE r")
    check(talk.ask("SELECT sum(x) AS s FROM r") != first, "REFRESH drew nothing new")
    talk.end()


def held_order_is_read_back(place):
    talk = Conversation(place)
    talk.ask("CACHE TABLE o AS SELECT (range * 7919) % 10007 AS n FROM range(10007) ORDER BY n DESC")
    same(talk.ask("SELECT * FROM o LIMIT 3"), ["n", "10006", "10005", "10004"])
    talk.end()


main([hit_reads_no_source, cut_blocks_are_computed_again, altered_blocks_are_computed_again,
      removed_blocks_are_computed_again, damage_without_input_is_an_error, uncached_stays_uncached,
      view_that_is_uncached_still_answers, held_random_is_drawn_once, held_order_is_read_back])
