-- stream dims
SELECT dims.id, s.n FROM dims
JOIN (SELECT f.k, count(*) AS n FROM facts f JOIN dupes b ON f.k = b.k GROUP BY f.k) s ON s.k = dims.k
