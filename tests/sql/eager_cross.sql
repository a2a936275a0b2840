SELECT d.flag, count(*) AS n, sum(f.k) AS total FROM dupes f CROSS JOIN dims d GROUP BY d.flag
