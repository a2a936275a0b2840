-- Averages and sums of decimals over the rows with the same key, also of values at the limits of their type.
SELECT f.id, f.k, CAST(null AS DECIMAL(38, 10)) AS a FROM facts f WHERE CAST(f.id AS DECIMAL(12, 2)) < (SELECT 1.2 * avg(CAST(x.id AS DECIMAL(12, 2))) FROM facts x WHERE x.k = f.k)
UNION ALL SELECT f.id, f.k, a.n FROM facts f JOIN (SELECT k, sum(CAST(id AS DECIMAL(17, 3))) AS n FROM facts GROUP BY k) a ON f.k = a.k JOIN dupes d ON d.k = f.k WHERE d.id < 90
UNION ALL SELECT f.id, f.k, a.m FROM facts f JOIN (SELECT k, max(amount) AS m FROM facts GROUP BY k) a ON f.k = a.k AND f.amount = a.m
UNION ALL SELECT f.id, f.k, null FROM facts f WHERE f.amount > (SELECT try_avg(x.amount) FROM facts x WHERE x.k = f.k)
UNION ALL SELECT f.id, f.k, a.v FROM facts f JOIN (SELECT amount, avg(id) AS v FROM facts GROUP BY amount) a ON f.amount = a.amount
