SELECT /*+ MERGE(d) */ f.id FROM facts f JOIN dims d ON f.k = d.k WHERE f.k IN (SELECT k FROM dupes)
