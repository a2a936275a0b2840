-- Partial aggregation of keys that are unique saves nothing. Selinger measures that and stops it.
-- set spark.selinger.eliminateGrouping.enabled=false
-- set spark.selinger.aggregate.measuredPartialMinRows=0
SELECT id, count(*), sum(k) FROM facts GROUP BY id
