-- Queries over the tables of tables.sql, in SQL that Spark and DuckDB read alike. A line `-- name: what is
-- aggregated` starts each. Large results are counted, so that returning them is not what is measured.

-- q01: dropDuplicates over 10^3 keys, with a text
SELECT count(*), sum(length(s)), sum(n) FROM (SELECT k3, first(s3) AS s, count(*) AS n FROM facts GROUP BY k3) t

-- q02: dropDuplicates over 10^5 keys, with a text
SELECT count(*), sum(length(s)), sum(n) FROM (SELECT k5, first(s5) AS s, count(*) AS n FROM facts GROUP BY k5) t

-- q03: dropDuplicates over 5 * 10^5 keys, with a text
SELECT count(*), sum(length(s)), sum(n) FROM (SELECT k55, first(s55) AS s, count(*) AS n FROM facts GROUP BY k55) t

-- q04: dropDuplicates over 10^7 keys, with a text
SELECT count(*), sum(length(s)), sum(n) FROM (SELECT id, first(s7) AS s, count(*) AS n FROM facts GROUP BY id) t

-- q05: the greatest text of 10^3 keys
SELECT count(*), max(s) FROM (SELECT k3, max(s7) AS s FROM facts GROUP BY k3) t

-- q06: the greatest text of 10^5 keys
SELECT count(*), max(s) FROM (SELECT k5, max(s7) AS s FROM facts GROUP BY k5) t

-- q07: the greatest text of 10^7 keys
SELECT count(*), max(s) FROM (SELECT id, max(s7) AS s FROM facts GROUP BY id) t

-- q08: sums over keys that are unique
SELECT count(*), sum(n), max(p) FROM (SELECT id, count(*) AS n, sum(price) AS p FROM facts GROUP BY id) t

-- q09: ROLLUP over six columns that depend on each other
SELECT count(*), sum(p), max(n) FROM (
  SELECT region, country, city, year, month, channel, sum(price) AS p, count(*) AS n
  FROM facts GROUP BY ROLLUP (region, country, city, year, month, channel)) t

-- q10: CUBE over four columns
SELECT count(*), sum(p), max(n) FROM (
  SELECT region, year, month, channel, sum(price) AS p, count(*) AS n
  FROM facts GROUP BY CUBE (region, year, month, channel)) t

-- q11: three COUNT(DISTINCT)
SELECT channel, count(DISTINCT k3), count(DISTINCT k5), count(DISTINCT city) FROM facts GROUP BY channel

-- q12: a fact table joined with another one that has several rows a key, then summed
SELECT f.channel, sum(r.refund), sum(f.price), count(*) FROM facts f JOIN returns r ON f.k5 = r.k5 GROUP BY f.channel

-- q13: a sum by a column of the other table
SELECT d.country, sum(f.price), avg(f.price), count(*)
FROM facts f JOIN (SELECT DISTINCT k5, 'country ' || (k5 % 60) AS country FROM returns) d ON f.k5 = d.k5
GROUP BY d.country

-- q14: the sum of a product of a decimal and an integer
SELECT channel, sum(coalesce(price * quantity, 0)) FROM facts GROUP BY channel

-- q15: the sum of a quotient of sums of decimals
SELECT channel, sum(((extended - cost - discount) + price) / 2) FROM facts GROUP BY channel

-- q16: products of two and of three decimals, and averages
SELECT channel, year, sum(quantity), sum(extended), sum(extended * (1 - rate)),
  sum(extended * (1 - rate) * (1 + rate)), avg(extended), avg(rate), count(*)
FROM facts GROUP BY channel, year

-- q17: the three dearest rows of each of a thousand keys
SELECT count(*), sum(price), max(id) FROM (
  SELECT id, price, row_number() OVER (PARTITION BY k3 ORDER BY price DESC, id) AS place FROM facts) t
WHERE place <= 3

-- q18: lists of 10^4 numbers for 10^3 keys
SELECT count(*), count_if(array_contains(l, 7)) FROM (SELECT k3, array_agg(quantity) AS l FROM facts GROUP BY k3) t

-- q19: lists of a hundred numbers for 10^5 keys
SELECT count(*), count_if(array_contains(l, 7)) FROM (SELECT k5, array_agg(quantity) AS l FROM facts GROUP BY k5) t

-- q20: lists of one number for 10^7 keys
SELECT count(*), count_if(array_contains(l, 7)) FROM (SELECT id, array_agg(quantity) AS l FROM facts GROUP BY id) t

-- q21: the median of 10^3 keys
SELECT count(*), sum(m) FROM (SELECT k3, median(quantity) AS m FROM facts GROUP BY k3) t

-- q22: the median of 10^5 keys
SELECT count(*), sum(m) FROM (SELECT k5, median(quantity) AS m FROM facts GROUP BY k5) t

-- q23: the name of the last row of 10^5 keys
SELECT count(*), max(s) FROM (SELECT k5, max_by(s7, id) AS s FROM facts GROUP BY k5) t

-- q24: the greatest text of 10^5 keys that are texts
SELECT count(*), max(s) FROM (SELECT s5, max(s7) AS s FROM facts GROUP BY s5) t

-- q25: the greatest text of 10^6 pairs of keys
SELECT count(*), max(s) FROM (SELECT k5, channel, max(s7) AS s FROM facts GROUP BY k5, channel) t

-- q26: dropDuplicates over 6 * 10^6 pairs of keys, with three texts
SELECT count(*), sum(length(s)), sum(length(t)), count(c) FROM (
  SELECT k5, quantity, first(s5) AS s, first(s3) AS t, first(city) AS c FROM facts GROUP BY k5, quantity) t

-- q27: the sum of a bigint by a column of the other table
SELECT d.country, sum(f.k3), count(*)
FROM facts f JOIN (SELECT DISTINCT k5, 'country ' || (k5 % 60) AS country FROM returns) d ON f.k5 = d.k5
GROUP BY d.country

-- q28: ROLLUP with sums of bigint
SELECT count(*), max(total), max(n) FROM (
  SELECT region, country, city, year, month, channel, sum(k3) AS total, count(*) AS n
  FROM facts GROUP BY ROLLUP (region, country, city, year, month, channel)) t

-- q29: two COUNT(DISTINCT) of all rows, one of texts
SELECT count(DISTINCT s3), count(DISTINCT k5) FROM facts

-- q30: five COUNT(DISTINCT) beside sums
SELECT year, count(DISTINCT k3), count(DISTINCT region), count(DISTINCT country), count(DISTINCT city),
  count(DISTINCT quantity), sum(price), count(*)
FROM facts GROUP BY year

-- q31: three COUNT(DISTINCT) of a hundredth of the rows
SELECT channel, count(DISTINCT k3), count(DISTINCT k55), count(DISTINCT s5) FROM facts WHERE quantity = 7 GROUP BY channel

-- q32: two COUNT(DISTINCT) for each of 5 * 10^5 keys
SELECT count(*), sum(a), max(b) FROM (
  SELECT k55, count(DISTINCT k3) AS a, count(DISTINCT city) AS b FROM facts GROUP BY k55) t

-- q33: lists of twenty numbers for 5 * 10^5 keys
SELECT count(*), count_if(array_contains(l, 7)) FROM (SELECT k55, array_agg(quantity) AS l FROM facts GROUP BY k55) t
