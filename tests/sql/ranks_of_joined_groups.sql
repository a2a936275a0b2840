-- Ranks of sums over a join, and the same rank of another group by a dense rank.
SELECT a.place, a.s, a.total, b.s AS other
FROM (
  SELECT s, total, rank() OVER (PARTITION BY flag ORDER BY total DESC NULLS LAST) AS place, flag
  FROM (SELECT f.s, f.flag, sum(d.k) AS total FROM facts f JOIN dims d ON f.k = d.k GROUP BY f.s, f.flag)
) a
JOIN (
  SELECT s, dense_rank() OVER (ORDER BY max(big)) AS place FROM facts GROUP BY s
) b ON a.place = b.place
WHERE a.place <= 3 AND b.place < 5
