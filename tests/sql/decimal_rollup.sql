-- Sums of decimals in grouping sets.
SELECT a.k % 5, b.flag, sum(a.m), avg(a.m), sum(a.m * b.m), grouping_id()
FROM (SELECT *, cast(id * 37 % 1000 AS decimal(12, 2)) AS m FROM facts) a
JOIN (SELECT *, cast(id % 13 AS decimal(15, 3)) AS m FROM dims) b ON a.k = b.k
GROUP BY ROLLUP (a.k % 5, b.flag)
