-- Products, quotients and sums of decimals whose values fit longs, and of some that do not.
SELECT a.id, a.m * b.m AS product, a.m * b.m * b.m * a.n AS long_product,
  (a.m - b.m + a.n) / 2 AS half, a.m / b.n AS quotient, a.n * a.k AS by_int, -a.m + b.big * a.m AS wide,
  a.amount * 2 - b.amount AS limits, CASE WHEN a.m > b.m * 2 THEN a.m * 3 ELSE b.m END AS chosen
FROM (SELECT *, cast(id * 37 % 1000 AS decimal(7, 2)) / 3 AS m, cast(k AS decimal(12, 4)) AS n FROM facts) a
JOIN (SELECT *, cast(id % 13 AS decimal(9, 3)) AS m, cast(k - 3 AS decimal(5, 1)) AS n FROM dims) b ON a.k = b.k
WHERE a.m * 1.5 > b.m + 10
