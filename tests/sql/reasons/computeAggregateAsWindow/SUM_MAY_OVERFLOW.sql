-- set spark.selinger.merge.minGain=0
-- set spark.sql.ansi.enabled=false
SELECT f.id FROM facts f WHERE f.amount > (SELECT sum(x.amount) FROM facts x WHERE x.k = f.k)
