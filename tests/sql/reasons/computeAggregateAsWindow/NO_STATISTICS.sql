-- set spark.selinger.readFooterStatistics.enabled=false
SELECT f.id FROM facts f WHERE f.id > (SELECT avg(x.k) FROM facts x WHERE x.k = f.k)
