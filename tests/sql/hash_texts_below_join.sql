SELECT f.k, f.t, g.t, rank() OVER (PARTITION BY f.k ORDER BY f.t)
FROM (SELECT k, max(s) AS t FROM facts GROUP BY k) f
FULL JOIN (SELECT k, min(s) AS t FROM dupes GROUP BY k) g ON f.k = g.k
