-- No side can be broadcast, so that all pairs of partitions are joined.
-- set spark.sql.sources.fileCompressionFactor=1000000
-- set spark.selinger.join.broadcastMaxBytes=1
SELECT f.id FROM facts f JOIN spans s ON f.k < s.low
