-- set spark.selinger.merge.minGain=0.95
SELECT f.id FROM facts f WHERE f.id > (SELECT avg(x.id) FROM facts x WHERE x.k = f.k)
