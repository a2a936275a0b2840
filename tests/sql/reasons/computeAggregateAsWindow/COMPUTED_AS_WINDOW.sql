-- set spark.selinger.merge.minGain=0
SELECT f.id FROM facts f JOIN dims e ON f.k = e.k WHERE e.id < 9 AND f.id > (SELECT avg(id) FROM facts x WHERE x.k = e.k)
