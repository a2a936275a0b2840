SELECT f.id, max(d.s) AS s FROM facts f JOIN dims d ON f.k = d.id GROUP BY f.id
UNION ALL SELECT f.id, max(d.s) AS s FROM facts f JOIN dims d ON f.k = d.id GROUP BY f.id
