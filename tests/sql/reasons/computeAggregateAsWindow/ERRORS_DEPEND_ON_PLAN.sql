-- set spark.selinger.merge.minGain=0
-- set spark.sql.ansi.enabled=true
SELECT f.id FROM facts f WHERE f.id > (SELECT avg(10 div (x.id + 1)) FROM facts x WHERE x.k = f.k)
