-- set spark.selinger.merge.minGain=0
SELECT /*+ MERGE(a) */ f.id FROM facts f JOIN (SELECT k, max(id) AS m FROM facts GROUP BY k) a ON f.k = a.k AND f.id = a.m
