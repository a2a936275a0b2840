-- set spark.selinger.readFooterStatistics.enabled=false
SELECT DISTINCT a.k FROM facts a JOIN facts b ON a.k = b.k AND a.s <> b.s
