-- Rows compared with an aggregate of the rows with the same key: nulls in keys and values, repeated rows, several keys.
SELECT f.id, 1 AS part FROM facts f WHERE f.id > (SELECT avg(x.id) FROM facts x WHERE x.k = f.k)
UNION ALL SELECT f.id, 2 FROM facts f JOIN dupes e ON f.k = e.k WHERE e.flag AND f.id < (SELECT 90 * count(x.s) FROM facts x WHERE x.k = e.k)
UNION ALL SELECT f.id, 3 FROM facts f JOIN dupes e ON f.k = e.k WHERE f.day = (SELECT min(x.day) FROM facts x WHERE x.k = e.k AND x.s = f.s)
UNION ALL SELECT f.id, a.n + a.m FROM facts f JOIN (SELECT big, s, count(*) AS n, max(id) AS m FROM facts GROUP BY big, s HAVING count(*) > 2) a ON f.big = a.big AND a.s = f.s WHERE f.flag
UNION ALL SELECT f.id, e.id FROM dims f JOIN dupes e ON f.k = e.k AND f.s < e.s WHERE f.k < (SELECT sum(x.k) / 3 FROM dims x WHERE x.k = e.k)
UNION ALL SELECT f.id, 6 FROM nulls f WHERE f.id >= (SELECT coalesce(max(x.k), min(x.id)) FROM nulls x WHERE x.s = f.s)
