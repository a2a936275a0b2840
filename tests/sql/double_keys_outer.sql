SELECT a.id, a.d, b.d FROM facts a FULL JOIN (SELECT DISTINCT d FROM dupes) b ON a.d = b.d
