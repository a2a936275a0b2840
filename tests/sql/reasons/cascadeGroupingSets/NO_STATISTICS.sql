-- set spark.selinger.readFooterStatistics.enabled=false
SELECT k, s, count(*) FROM facts GROUP BY ROLLUP (k, s)
