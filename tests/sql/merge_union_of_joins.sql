SELECT 'a' AS name, count(*) AS n, sum(f.k) AS total FROM facts f JOIN dims d ON f.k = d.k WHERE d.s = 'a'
UNION ALL
SELECT 'b', count(*), sum(f.k) FROM facts f JOIN dims d ON f.k = d.k WHERE d.s = 'b' AND d.day IS NOT NULL
UNION ALL
SELECT 'nothing', count(*), sum(f.k) FROM facts f JOIN dims d ON f.k = d.k WHERE d.id < 0
