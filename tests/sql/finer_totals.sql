-- Each group beside its share of two totals, one of which has a condition on a grouping column.
WITH t AS (SELECT k, flag, sum(id) AS s, count(*) AS n, avg(d) AS a, min(day) AS first FROM facts GROUP BY k, flag)
SELECT t.*, x.s AS all_of_k, y.s AS flagged, z.* FROM t LEFT JOIN (SELECT k, sum(id) AS s FROM facts GROUP BY k) x ON t.k <=> x.k
CROSS JOIN (SELECT sum(id) AS s FROM facts WHERE flag) y CROSS JOIN (SELECT count(day) AS c, avg(k) AS mean, max(at) AS latest FROM facts) z
