-- Grouping sets, written as a union: with a join, without rows, and with nulls among the keys.
SELECT d.s, d.flag, count(*) AS n, sum(f.k) AS k, avg(cast(f.id AS decimal(9, 2))) AS a FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.s, d.flag
UNION ALL SELECT d.s, null, count(*), sum(f.k), avg(cast(f.id AS decimal(9, 2))) FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.s
UNION ALL SELECT null, null, count(*), sum(f.k), avg(cast(f.id AS decimal(9, 2))) FROM facts f JOIN dims d ON f.k = d.k
UNION ALL SELECT s, flag, count(*), sum(k), avg(cast(id AS decimal(9, 2))) FROM nothing GROUP BY s, flag
UNION ALL SELECT null, null, count(*), sum(k), avg(cast(id AS decimal(9, 2))) FROM nothing
