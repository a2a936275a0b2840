-- Groups and windows of which a join needs few, on sides that are filled with nulls, and by keys that are null.
WITH few AS (SELECT id, k, s, day FROM dims WHERE id % 20 = 3),
  t AS (SELECT f.k, f.s, count(*) AS n, max(f.id) AS m, avg(f.d) AS a FROM facts f LEFT JOIN dupes e ON f.id = e.id GROUP BY f.k, f.s)
SELECT few.id, t.n, t.m, t.a FROM few LEFT JOIN t ON few.k = t.k AND few.s = t.s
UNION ALL SELECT few.id, u.n, u.r, null FROM (SELECT k, count(*) OVER (PARTITION BY k) AS n, dense_rank() OVER (PARTITION BY k, s ORDER BY day) AS r FROM facts) u RIGHT JOIN few ON u.k = few.k
UNION ALL SELECT few.id, 1, null, null FROM few WHERE NOT EXISTS (SELECT 1 FROM (SELECT s, min(day) AS first FROM facts GROUP BY s) x WHERE x.s = few.s AND x.first > few.day)
UNION ALL SELECT few.id, v.n, null, null FROM few JOIN (SELECT k, s, count(*) AS n FROM facts GROUP BY CUBE (k, s)) v ON few.k <=> v.k AND few.s = v.s
