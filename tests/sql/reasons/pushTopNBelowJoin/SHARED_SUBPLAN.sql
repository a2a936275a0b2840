(SELECT f.id, d.s FROM facts f LEFT JOIN dims d ON f.k = d.id ORDER BY f.id LIMIT 10)
UNION ALL SELECT max(id), min(s) FROM (SELECT f.id, d.s FROM facts f LEFT JOIN dims d ON f.k = d.id)
