-- stream dims
SELECT d.id, a.n, b.n FROM dims d JOIN (SELECT k, s, count(*) AS n FROM facts WHERE s = 'a' GROUP BY k, s) a ON d.k = a.k JOIN (SELECT k, s, count(*) AS n FROM facts WHERE s = 'b' GROUP BY k, s) b ON d.k = b.k
