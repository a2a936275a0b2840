SELECT f.id, d.id AS d, f.s FROM facts f JOIN dims d ON f.k = d.id JOIN facts g ON g.id = f.id
UNION ALL SELECT n.id, d.id, n.s FROM nulls n JOIN dims d ON n.k = d.id
