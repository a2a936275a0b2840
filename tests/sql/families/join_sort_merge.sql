-- No hash table is safe: both sort.
-- set spark.sql.sources.fileCompressionFactor=1000000
-- set spark.selinger.join.broadcastMaxBytes=1
-- set spark.selinger.join.hashMemoryShare=0.000001
SELECT a.id, b.id FROM facts a JOIN dims b ON a.k = b.k
