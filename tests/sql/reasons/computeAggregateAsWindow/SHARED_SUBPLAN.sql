-- set spark.selinger.merge.minGain=0
WITH a AS (SELECT k, max(id) AS m FROM facts GROUP BY k)
SELECT f.id FROM facts f JOIN a ON f.k = a.k AND f.id = a.m UNION ALL SELECT e.id FROM dupes e JOIN a ON e.k = a.k AND e.id = a.m
