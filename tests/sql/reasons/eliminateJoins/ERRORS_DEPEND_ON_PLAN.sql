SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.id AND 100 / (d.id + 1) > 1
