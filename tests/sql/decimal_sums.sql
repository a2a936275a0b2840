-- Sums and averages of decimals of all widths, with filters, distinct values and no values at all.
SELECT a.k, sum(a.m), sum(a.m * b.n), sum(coalesce(a.m * b.n, 0)), avg(a.m), avg(a.m * b.n),
  sum(a.m * b.n) FILTER (WHERE a.flag), sum(DISTINCT b.n), sum(CASE WHEN b.flag THEN a.m ELSE -b.n END),
  sum(a.amount / 1000), avg(b.amount / 1000), sum(a.m * a.m * a.m * a.m), count(*)
FROM (SELECT *, cast(id * 37 % 1000 AS decimal(12, 2)) AS m FROM facts) a
LEFT JOIN (SELECT *, cast(id % 13 - 6 AS decimal(15, 3)) AS n FROM dims) b ON a.k = b.k
GROUP BY a.k
