-- set spark.selinger.aggregate.measuredPartialMinRows=0
-- set spark.selinger.readFooterStatistics.enabled=false
SELECT id, count(*) FROM facts GROUP BY id
