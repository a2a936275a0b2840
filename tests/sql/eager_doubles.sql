-- NaN, infinities, -0.0.
SELECT d.s, sum(f.d) AS total, avg(f.d) AS mean, sum(d.d) AS other, count(f.d) AS n
FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.s
