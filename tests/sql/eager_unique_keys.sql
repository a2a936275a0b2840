-- Groups of a partial aggregate are not unique, although its keys look so.
SELECT DISTINCT x.k FROM (SELECT d.k, d.n, sum(f.k % 3) AS total FROM facts f
  JOIN (SELECT k, count(*) AS n FROM dupes GROUP BY k) d ON f.k = d.k GROUP BY d.k, d.n) x
