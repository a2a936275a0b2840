-- set spark.sql.sources.fileCompressionFactor=1000000
-- set spark.selinger.join.broadcastMaxBytes=1
-- set spark.selinger.join.minGain=0.5
SELECT a.id, b.id FROM facts a JOIN dims b ON a.k = b.k
