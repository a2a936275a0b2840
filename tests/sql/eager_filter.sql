SELECT d.s, count(*) FILTER (WHERE f.flag) AS n, sum(f.k) FILTER (WHERE f.k > 20) AS total,
  sum(f.k) FILTER (WHERE d.k > 20) AS mixed, avg(f.k) FILTER (WHERE f.flag) AS mean,
  count(d.k) FILTER (WHERE d.flag) AS other, avg(d.k) FILTER (WHERE f.flag) AS crossed
FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.s
