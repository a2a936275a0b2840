SELECT f.id FROM facts f WHERE f.k IN (SELECT max(k) FROM dims GROUP BY s)
