-- set spark.selinger.aggregate.measuredPartialMinRows=0
SELECT flag, count(*) FROM facts GROUP BY flag
