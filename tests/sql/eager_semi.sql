SELECT f.s, count(*) AS n, sum(f.k) AS total FROM facts f
WHERE f.k IN (SELECT k FROM dims WHERE flag) AND NOT EXISTS (SELECT 1 FROM dupes b WHERE b.day = f.day AND b.k > f.k % 4)
GROUP BY f.s
