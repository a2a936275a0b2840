SELECT f.k FROM (SELECT a.k FROM facts a JOIN dims b ON a.id = b.id WHERE a.k IN (SELECT k FROM dupes)) f JOIN dims d ON f.k = d.k
UNION ALL SELECT a.k FROM facts a JOIN dims b ON a.id = b.id WHERE a.k IN (SELECT k FROM dupes)
