-- No keys: one row, whatever the join returns.
SELECT count(*) AS n, count(f.k) AS c, sum(f.k) AS total, avg(f.k) AS mean, max(f.day) AS last,
  sum(try_cast(f.k AS decimal(7,2))) AS short FROM facts f JOIN dims d ON f.k = d.k
