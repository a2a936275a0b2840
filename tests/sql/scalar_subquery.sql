SELECT f.id, (SELECT max(d.id) FROM dims d WHERE d.k = f.k) FROM facts f WHERE f.id > (SELECT avg(id) FROM facts)
