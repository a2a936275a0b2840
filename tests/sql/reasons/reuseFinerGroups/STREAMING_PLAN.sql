-- stream dims
SELECT d.id, a.n, b.n AS other FROM dims d JOIN (SELECT k, s, count(*) AS n FROM facts GROUP BY k, s) a ON d.k = a.k JOIN (SELECT k, count(*) AS n FROM facts GROUP BY k) b ON d.k = b.k
