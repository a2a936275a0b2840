SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.k
