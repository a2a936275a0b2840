-- set spark.selinger.readFooterStatistics.enabled=false
SELECT a.k, b.s FROM facts a JOIN dims b ON a.id = b.id
