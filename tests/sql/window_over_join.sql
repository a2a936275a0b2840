SELECT f.id, d.s, row_number() OVER (PARTITION BY d.s ORDER BY f.id, d.id) AS n FROM facts f JOIN dims d ON f.k = d.k WHERE f.id < 900
