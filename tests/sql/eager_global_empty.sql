SELECT count(*) AS n, count(f.k) AS c, sum(f.k) AS total, avg(f.k) AS mean, max(f.day) AS last,
  sum(try_cast(f.k AS decimal(7,2))) AS short FROM facts f JOIN nothing d ON f.k = d.k
UNION ALL
SELECT count(*) AS n, count(f.k) AS c, sum(f.k) AS total, avg(f.k) AS mean, max(f.day) AS last,
  sum(try_cast(f.k AS decimal(7,2))) AS short FROM nothing f JOIN dims d ON f.k = d.k
