-- SPDX-License-Identifier: Apache-2.0
-- Holding a result. Run from any directory: holdfast sql --timing -f holding.sql

-- An expensive query: how many divisors a number has.
CREATE VIEW factors AS
SELECT a.range AS n, count(*) AS divisors
FROM range(1, 3000) AS a, range(1, 3000) AS b
WHERE a.range % b.range = 0
GROUP BY a.range;

-- Hold it from its first use on. Nothing runs yet; EXPLAIN says that it would miss.
CACHE LAZY TABLE factors;
EXPLAIN SELECT max(divisors) FROM factors;

-- The first action computes and holds it, the others read it back.
SELECT max(divisors) AS most FROM factors;
SELECT n FROM factors WHERE divisors = 40 ORDER BY n LIMIT 3;
SELECT divisors, count(*) AS numbers FROM factors GROUP BY divisors ORDER BY numbers DESC, divisors LIMIT 3;

-- Held results may be built on others.
CACHE TABLE primes AS SELECT n FROM factors WHERE divisors = 2;
SELECT count(*) AS primes, max(n) AS largest FROM primes;
SHOW CACHE;

-- Let both go. The view stays, and computes again when it is used.
CLEAR CACHE;
SHOW CACHE;
