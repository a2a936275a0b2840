-- set spark.selinger.aggregate.measuredPartialMinRows=0
SELECT id, sum(big * 3) FROM facts GROUP BY id
