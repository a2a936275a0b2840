-- stream dims
SELECT dims.id, c.n FROM dims JOIN (SELECT u.s, count(*) AS n FROM facts f JOIN dupes u ON f.k = u.k GROUP BY u.s) c
ON dims.s = c.s
