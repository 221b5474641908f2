-- SPDX-License-Identifier: Apache-2.0
-- Files as tables. Run from this directory: holdfast sql -f files.sql

-- A file is named in quotes, and read by its ending.
DESCRIBE SELECT * FROM 'data/sales.csv';

-- A view gives a query a name.
CREATE VIEW sales AS
SELECT day, region, amount
FROM read_csv('data/sales.csv', columns = {'day': 'DATE', 'region': 'VARCHAR', 'amount': 'DECIMAL(9,2)'});

SELECT region, count(*) AS sales, sum(amount) AS total
FROM sales
GROUP BY region
ORDER BY region;

-- A moving sum in each region.
SELECT region, day, sum(amount) OVER (PARTITION BY region ORDER BY day ROWS 1 PRECEDING) AS last_two
FROM sales
ORDER BY region, day;
