-- set spark.selinger.merge.minGain=0
SELECT f.id FROM facts f JOIN (SELECT k, max(id) + 0 * rand(3) AS m FROM facts GROUP BY k) a ON f.k = a.k AND f.id = a.m
