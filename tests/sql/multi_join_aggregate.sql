SELECT d.s, count(*) AS n, sum(f.id) AS total, count(DISTINCT b.id) AS others
FROM facts f JOIN dims d ON f.k = d.k LEFT JOIN dupes b ON d.k = b.k JOIN spans p ON p.id = d.id
WHERE f.id % 3 = 0 GROUP BY d.s HAVING count(*) > 2
