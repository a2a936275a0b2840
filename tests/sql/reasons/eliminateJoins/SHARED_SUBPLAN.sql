SELECT f.id, 'none' AS s FROM facts f LEFT JOIN dims d ON f.k = d.id
UNION ALL SELECT f.id, d.s FROM facts f LEFT JOIN dims d ON f.k = d.id
