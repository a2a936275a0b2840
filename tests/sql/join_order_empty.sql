SELECT f.id, d.id AS d_id, n.id AS n_id
FROM facts f JOIN dims d ON f.k = d.k JOIN nothing n ON d.big = n.big
