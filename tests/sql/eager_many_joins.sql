SELECT p.high, b.flag, sum(f.k) AS total, count(*) AS n, avg(d.k) AS mean, min(b.day) AS first
FROM facts f JOIN dims d ON f.k = d.k JOIN dupes b ON d.k % 9 = b.k LEFT JOIN spans p ON p.id = d.k
GROUP BY p.high, b.flag
