-- set spark.selinger.shareEstimates.enabled=true
-- set spark.sql.sources.fileCompressionFactor=0.01
-- set spark.sql.autoBroadcastJoinThreshold=1m
SELECT * FROM sales JOIN items ON sales.item = items.id WHERE items.name LIKE '%i%'
