-- The aggregated rows are joined rows, with filters and with two readings of one table, beside outer joins and empty tables.
SELECT f.id, d.s FROM facts f JOIN dims d ON f.big = d.big JOIN dupes e ON e.k = f.k WHERE d.id < 100 AND e.id < 40 AND f.id >= (SELECT avg(x.id) FROM facts x JOIN dims y ON x.big = y.big WHERE y.id < 100 AND x.k = e.k)
UNION ALL SELECT a.id, b.s FROM dims a JOIN dims b ON a.id = b.k WHERE b.id > (SELECT max(y.id) - 20 FROM dims x JOIN dims y ON x.id = y.k WHERE x.s = a.s)
UNION ALL SELECT f.id, 'outer' FROM dims d LEFT JOIN (SELECT f.id, f.k FROM facts f WHERE f.id > (SELECT avg(x.id) FROM facts x WHERE x.k = f.k)) f ON f.k = d.k
UNION ALL SELECT f.id, a.t FROM facts f LEFT JOIN (SELECT k, max(s) AS t FROM facts GROUP BY k) a ON f.k = a.k WHERE f.id < 300
UNION ALL SELECT f.id, 'empty' FROM facts f JOIN nothing e ON f.k = e.k WHERE f.id > (SELECT avg(x.id) FROM facts x WHERE x.k = e.k)
UNION ALL SELECT f.id, 'empty' FROM nothing f JOIN dims e ON f.k = e.k WHERE f.id > (SELECT min(x.id) FROM nothing x WHERE x.k = e.k)
UNION ALL SELECT f.id, string((SELECT min(x.id) FROM facts x WHERE x.k = f.k)) FROM facts f WHERE f.flag
