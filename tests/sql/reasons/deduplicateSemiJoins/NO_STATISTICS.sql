-- set spark.selinger.readFooterStatistics.enabled=false
SELECT id FROM dims WHERE k IN (SELECT k FROM facts)
