SELECT f.k FROM dims d JOIN (SELECT a.k FROM facts a JOIN dupes b ON a.id = b.id WHERE a.k IN (SELECT k FROM dupes) AND a.k IS NOT NULL) f ON f.k = d.k
UNION ALL SELECT a.k FROM facts a JOIN dupes b ON a.id = b.id WHERE a.k IN (SELECT k FROM dupes) AND a.k IS NOT NULL
