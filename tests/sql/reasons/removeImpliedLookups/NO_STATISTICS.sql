-- set spark.selinger.readFooterStatistics.enabled=false
SELECT f.id FROM facts f JOIN dims d ON f.k = d.k WHERE f.k IN (SELECT k FROM dupes)
