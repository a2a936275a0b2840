SELECT count(*) FROM facts f JOIN dims d ON f.k = d.k AND 100 / (f.id + d.id + 1) >= 0
JOIN spans s ON f.id = s.id
