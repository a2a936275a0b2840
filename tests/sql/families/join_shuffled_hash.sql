-- No side can be broadcast. Spark sorts, Selinger hashes the smaller side.
-- set spark.sql.sources.fileCompressionFactor=1000000
-- set spark.selinger.join.broadcastMaxBytes=1
-- set spark.selinger.join.hashMemoryShare=1.0
SELECT a.id, b.id FROM facts a JOIN dims b ON a.k = b.k
