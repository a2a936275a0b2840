-- stream dims
SELECT d.id, a.n FROM dims d JOIN (SELECT k, count(*) AS n FROM facts GROUP BY k) a ON d.k = a.k JOIN dupes e ON d.k = e.k WHERE e.id < 9
