-- set spark.selinger.merge.minGain=0
-- stream dims
SELECT d.id FROM dims d JOIN facts f ON d.id = f.id WHERE f.id > (SELECT avg(x.id) FROM facts x WHERE x.k = f.k)
