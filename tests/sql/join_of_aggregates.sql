-- Both sides are partitioned by the key already.
SELECT a.k, a.n, b.total FROM (SELECT k, count(*) AS n FROM facts GROUP BY k) a
FULL JOIN (SELECT k, sum(id) AS total FROM dupes GROUP BY k) b ON a.k = b.k
