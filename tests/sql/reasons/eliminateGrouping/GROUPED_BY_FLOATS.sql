SELECT id, d, count(*) AS n FROM dims GROUP BY id, d
