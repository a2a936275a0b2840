SELECT f.k, count(*) AS n, sum(f.big) AS total, min(b.id) AS first
FROM facts f LEFT JOIN dims a ON f.k = a.id AND a.s = f.s LEFT JOIN dims b ON f.id = b.id LEFT JOIN nulls c ON b.k = c.id
GROUP BY f.k
