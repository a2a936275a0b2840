-- stream dims
SELECT dims.id, c.a, c.b FROM dims
JOIN (SELECT k, count(DISTINCT s) AS a, count(DISTINCT big) AS b FROM facts GROUP BY k) c ON dims.k = c.k
