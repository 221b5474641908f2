#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Files as they lie about: odd paths, patterns, partitions, compressed and empty files, files
# that change between statements, and what is no file at all.
import gzip
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from command import Conversation, check, has, main, same  # noqa: E402

ROWS = "x,y\n1,2\n"


def put(place, name, text=ROWS):
    os.makedirs(os.path.dirname(place.path(name)), exist_ok=True)
    data = text.encode() if isinstance(text, str) else text
    with open(place.path(name), "wb") as file:
        file.write(data)


def gives(place, sql, out):
    done = place.sql("--format", "csv", "-c", sql)
    same((done.status, done.out), (0, out), f"{sql}\n{done.err}")


def fails(place, sql, *parts, stdin=""):
    done = place.sql("-c", sql, stdin=stdin)
    same((done.status, done.out), (1, ""), sql)
    has(done.err, "hint: ", *parts)
    place.check_clean()
    return done.err


def paths_with_odd_characters(place):
    for name in ("a b.csv", "it's.csv", 'say "x".csv', "e[1].csv", "ünï/naïve 😀.csv", "a,b;c.csv", "x=1/y.csv",
                 "-c.csv", "{a}.csv", "new\nline.csv", "c$d%20.csv", "back\\slash.csv"):
        put(place, name)
        quoted = name.replace("'", "''")
        gives(place, f"SELECT x, y FROM '{quoted}'", ROWS)
        gives(place, f"SELECT x, y FROM read_csv(['{quoted}'])", ROWS)
    gives(place, "SELECT x FROM './a b.csv'", "x\n1\n")
    gives(place, f"SELECT x FROM '{place.dir}/../{os.path.basename(place.dir)}/a b.csv'", "x\n1\n")


def patterns_of_none_one_and_many(place):
    fails(place, "FROM 'none/*.csv'", "FILE_NOT_FOUND", "pattern: none/*.csv")
    for number in range(3):
        put(place, f"many/{number}.csv", f"n\n{number}\n")
        gives(place, "SELECT * FROM 'many/*.csv'", "n\n" + "".join(f"{n}\n" for n in range(number + 1)))


def partitions_are_columns(place):
    for year in (2023, 2024):
        put(place, f"h/year={year}/m=1/a.csv", f"x\n{year}\n")
    gives(place, "SELECT x, year FROM 'h/*/*/*.csv' ORDER BY x", "x,year\n2023,2023\n2024,2024\n")
    gives(place, "SELECT x FROM read_csv('h/**/*.csv', hive_partitioning = true) WHERE year = 2024", "x\n2024\n")
    gives(place, "SELECT * FROM read_csv('h/**/*.csv', hive_partitioning = false) ORDER BY x", "x\n2023\n2024\n")


def files_of_different_columns(place):
    put(place, "d/1.csv", "x,y\n1,2\n")
    put(place, "d/2.csv", "y,x\n4,3\n")
    gives(place, "FROM 'd/*.csv'", "x,y\n1,2\n3,4\n")
    put(place, "d/3.csv", "x,z\n5,6\n")
    fails(place, "FROM 'd/*.csv'", "FILE_FORMAT", '"y"', "union_by_name")
    gives(place, "FROM read_csv('d/*.csv', union_by_name = true)", "x,y,z\n1,2,\n3,4,\n5,,6\n")
    put(place, "t/1.csv", "x\n1\n")
    put(place, "t/2.csv", "x\nword\n")
    gives(place, "FROM 't/*.csv'", "x\n1\nword\n")


def compressed_and_empty_files(place):
    put(place, "a.csv.gz", gzip.compress(ROWS.encode()))
    gives(place, "FROM 'a.csv.gz'", ROWS)
    put(place, "a.jsonl.gz", gzip.compress(b'{"a":1}\n{"a":2}\n'))
    gives(place, "FROM 'a.jsonl.gz'", "a\n1\n2\n")
    put(place, "array.json", '[{"a": 1}, {"a": 2}]')
    gives(place, "FROM 'array.json'", "a\n1\n2\n")
    put(place, "head.csv", "x,y\n")
    gives(place, "CACHE TABLE h AS FROM 'head.csv'; FROM h; SELECT count(x) AS n FROM h", "x,y\nn\n0\n")
    put(place, "empty.csv", "")
    gives(place, "SELECT count(*) AS n FROM 'empty.csv'", "n\n0\n")
    put(place, "empty.parquet", "")
    fails(place, "FROM 'empty.parquet'", "FILE_FORMAT", "empty.parquet")
    put(place, "cut.csv.gz", gzip.compress(os.urandom(4000))[:2000])
    fails(place, "FROM 'cut.csv.gz'", "FILE_FORMAT")
    put(place, "marked.csv", b"\xef\xbb\xbfa,b\r\n1,2\r\n")
    gives(place, "SELECT a FROM 'marked.csv'", "a\n1\n")
    put(place, "latin.csv", b"a,b\n\xe9t\xe9,2\n")
    fails(place, "FROM 'latin.csv'", "FILE_FORMAT", "utf-8")


def what_is_no_file(place):
    os.mkdir(place.path("dir.parquet"))
    fails(place, "FROM 'dir.parquet'", "FILE_FORMAT", "directory", "dir.parquet/*.parquet")
    fails(place, "FROM read_csv('dir.parquet')", "directory", "dir.parquet/*.csv")
    os.mkfifo(place.path("pipe.csv"))
    os.symlink("/dev/zero", place.path("zero.csv"))
    for path in ("pipe.csv", "zero.csv"):
        fails(place, f"FROM '{path}'", "FILE_FORMAT", "no regular file")
    for path in ("/dev/stdin", "/dev/zero", "/dev/null", "/dev/fd/0"):
        fails(place, f"FROM read_csv('{path}')", "FILE_FORMAT", "no regular file", stdin=ROWS)
    os.symlink("gone.csv", place.path("dangling.csv"))
    check("did you mean" not in fails(place, "FROM 'dangling.csv'", "FILE_NOT_FOUND"), "suggests what was asked for")
    os.symlink("b.csv", place.path("a.csv"))
    os.symlink("a.csv", place.path("b.csv"))
    fails(place, "FROM 'a.csv'", "IO", "symbolic links")
    fails(place, "FROM read_csv('')", "path is empty")
    fails(place, "FROM read_csv([])", "INVALID_ARGUMENT", "no file")
    fails(place, f"FROM '{'n' * 300}.csv'", "IO", "too long")


def name_that_is_not_utf8(place):
    with open(os.fsencode(place.path("n")) + b"\xff.csv", "wb") as file:
        file.write(ROWS.encode())
    put(place, "m.csv")
    fails(place, "FROM '*.csv'", "FILE_FORMAT", "not UTF-8: ", "n?.csv")
    gives(place, "FROM 'm*.csv'", ROWS)


def links_do_not_lead_out(place):
    put(place, "in/a.csv")
    put(place, "out/secret.csv", "s\nsecret\n")
    os.symlink("../out/secret.csv", place.path("in/link.csv"))
    os.symlink("../out", place.path("in/linked"))
    for path in ("in/link.csv", "in/linked/secret.csv", "in/linked/*.csv", "in/*/*.csv", "in/**/*.csv", "in/*.csv",
                 "in/../out/secret.csv", "out/secret.csv", "out/no.csv", f"file://{place.dir}/out/secret.csv",
                 "/proc/self/cwd/out/secret.csv", "/proc/self/environ"):
        done = place.sql("--allow-path", place.path("in"), "-c", f"FROM read_csv('{path}')")
        same((done.status, done.out), (1, ""), path)
        has(done.err, "PATH_REFUSED")
    done = place.sql("--allow-path", place.path("in"), "--format", "csv", "-c", "FROM 'in/a.csv'")
    same(done.out, ROWS, done.err)


def changed_file_is_looked_at_again(place):
    """Also when its size and its time of change look the same."""
    put(place, "c.csv", "a\n1\n")
    os.utime(place.path("c.csv"), (10**9, 10**9))
    talk = Conversation(place)
    same(talk.ask("FROM 'c.csv'"), ["a", "1"])
    talk.ask("CREATE VIEW v AS FROM 'c.csv'")
    talk.ask("CACHE TABLE held AS FROM 'c.csv'")
    put(place, "new.csv", "b\n2\n")
    os.utime(place.path("new.csv"), (10**9, 10**9))
    os.replace(place.path("new.csv"), place.path("c.csv"))
    same(talk.ask("FROM 'c.csv'"), ["b", "2"])
    same(talk.ask("FROM v"), ["b", "2"])
    same(talk.ask("FROM held"), ["a", "1"])
    talk.ask("REFRESH TABLE held")
    same(talk.ask("FROM held"), ["b", "2"])
    put(place, "c.csv", "b\nword\nmore\n")
    same(talk.ask("FROM v"), ["b", "word", "more"])
    same(talk.end()[0], 0)


main([paths_with_odd_characters, patterns_of_none_one_and_many, partitions_are_columns, files_of_different_columns,
      compressed_and_empty_files, what_is_no_file, name_that_is_not_utf8, links_do_not_lead_out,
      changed_file_is_looked_at_again])
