-- Regions inside of regions, with a projection that computes between them.
SELECT x.total, d.id, u.s
FROM (SELECT f.k AS k, f.id + d.id AS total FROM facts f JOIN dims d ON f.day = d.day JOIN dupes u ON f.k = u.k WHERE d.id < 10) x
JOIN dims d ON x.k = d.k
JOIN dupes u ON d.k = u.k
WHERE u.id < 30
