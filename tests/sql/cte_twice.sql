WITH hot AS (SELECT k, count(*) AS n FROM facts GROUP BY k HAVING count(*) > 20)
SELECT a.k, a.n, b.n FROM hot a JOIN hot b ON a.k = b.k + 1 WHERE EXISTS (SELECT 1 FROM hot c WHERE c.n = a.n)
