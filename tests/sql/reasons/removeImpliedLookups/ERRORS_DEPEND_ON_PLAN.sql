SELECT f.id FROM facts f JOIN dims d ON f.k = d.k AND 100 / (f.id + d.id) < 90 WHERE f.k IN (SELECT k FROM dupes)
