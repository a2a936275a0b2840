SELECT a.k, b.k, a.tags FROM nested a JOIN (SELECT DISTINCT k, tags FROM nested) b ON a.tags = b.tags AND a.k = b.k
