SELECT d.s, f.flag, count(*) AS n, count(f.id) AS c, sum(f.k) AS total, sum(d.k) AS other, avg(d.k) AS mean
FROM facts f FULL JOIN dims d ON f.big = d.big GROUP BY d.s, f.flag
