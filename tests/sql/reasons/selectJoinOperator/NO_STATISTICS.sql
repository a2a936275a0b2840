-- set spark.selinger.readFooterStatistics.enabled=false
SELECT a.id, b.id FROM facts a JOIN dims b ON a.k = b.k
