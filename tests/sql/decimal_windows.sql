-- Running sums, sums of a partition and averages in windows.
SELECT a.id, sum(a.m) OVER (PARTITION BY a.k ORDER BY a.id) AS running,
  sum(a.m * b.m) OVER (PARTITION BY a.k) AS whole,
  avg(a.m) OVER (PARTITION BY a.k ORDER BY a.id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS moving,
  sum(sum(a.m)) OVER (PARTITION BY a.k) AS of_sums
FROM (SELECT *, cast(id * 37 % 1000 AS decimal(12, 2)) AS m FROM facts WHERE id % 4 = 0) a
JOIN (SELECT *, cast(id % 13 AS decimal(15, 3)) AS m FROM dims) b ON a.k = b.k
GROUP BY a.id, a.k, a.m, b.m
