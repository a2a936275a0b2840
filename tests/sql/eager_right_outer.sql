SELECT d.flag, count(*) AS n, count(f.id) AS c, sum(f.k) AS total, min(f.k) AS least
FROM facts f RIGHT JOIN dupes d ON f.k = d.k GROUP BY d.flag
