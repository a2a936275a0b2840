-- set spark.selinger.merge.minGain=0
SELECT f.id FROM facts f WHERE f.d > (SELECT avg(x.d) FROM facts x WHERE x.k = f.k)
