SELECT f.k, count(DISTINCT f.s), count(DISTINCT d.big) FROM facts f JOIN dims d ON f.id = d.id GROUP BY f.k
