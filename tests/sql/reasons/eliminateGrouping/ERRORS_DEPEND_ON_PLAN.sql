SELECT id, count(*) AS n FROM dims GROUP BY id, 100 DIV (id + 1)
