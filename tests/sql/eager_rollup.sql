SELECT d.s, d.flag, grouping_id() AS id, avg(f.k) AS mean, sum(f.k) AS total, count(*) AS n, sum(d.k) AS other
FROM facts f JOIN dims d ON f.k = d.k GROUP BY ROLLUP (d.s, d.flag)
