-- set spark.selinger.eliminateGrouping.enabled=false
-- set spark.selinger.aggregate.maxHashedGroups=100
SELECT id, max(s) FROM facts GROUP BY id
