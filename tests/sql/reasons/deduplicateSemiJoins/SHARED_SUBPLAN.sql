SELECT id FROM dims WHERE k IN (SELECT f.k FROM facts f JOIN dupes b ON f.k = b.k)
UNION ALL SELECT f.k FROM facts f JOIN dupes b ON f.k = b.k
