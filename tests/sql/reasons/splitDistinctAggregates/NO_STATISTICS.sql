-- set spark.selinger.readFooterStatistics.enabled=false
SELECT k, count(DISTINCT s), count(DISTINCT big) FROM facts GROUP BY k
