-- set spark.selinger.eliminateGrouping.enabled=false
-- set spark.selinger.aggregate.measuredPartialMinRows=0
SELECT id, stddev(k) FROM facts GROUP BY id
