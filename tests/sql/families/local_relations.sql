-- Rows that are written in the query are computed while it is planned, and what has no rows is left out.
SELECT x + 1 AS y FROM VALUES (1), (2) AS a(x) WHERE x > 1
UNION ALL SELECT b.id FROM dims a JOIN (SELECT id FROM facts LIMIT 0) b ON a.k = b.id
