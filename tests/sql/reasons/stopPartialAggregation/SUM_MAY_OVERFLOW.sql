-- set spark.selinger.eliminateGrouping.enabled=false
-- set spark.selinger.aggregate.measuredPartialMinRows=0
SELECT id, sum(big * 30) FROM facts GROUP BY id
