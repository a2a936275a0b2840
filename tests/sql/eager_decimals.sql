-- Sums and averages of decimals of few and of many digits; the largest have no room.
SELECT d.k, sum(try_cast(f.k AS decimal(7,2))) AS short, avg(try_cast(f.k AS decimal(7,2))) AS short_mean,
  sum(cast(f.k AS decimal(15,3))) AS medium, avg(cast(f.k AS decimal(15,3))) AS medium_mean,
  sum(cast(f.big AS decimal(28,1))) AS long, avg(cast(f.big AS decimal(28,1))) AS long_mean,
  sum(try_cast(d.k AS decimal(7,2))) AS other, avg(cast(d.k AS decimal(15,3))) AS other_mean,
  sum(cast(d.k AS decimal(15,3))) AS other_medium
FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.k
