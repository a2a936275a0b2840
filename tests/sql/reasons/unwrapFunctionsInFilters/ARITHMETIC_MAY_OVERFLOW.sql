-- set spark.sql.ansi.enabled=true
-- set spark.selinger.readFooterStatistics.enabled=false
SELECT id FROM facts WHERE k + 1 > 20
