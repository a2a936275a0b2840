-- set spark.selinger.eliminateGrouping.enabled=false
-- set spark.selinger.aggregate.maxHashedObjects=100
SELECT id, percentile(k, 0.5) FROM facts GROUP BY id
