-- Spark takes both sides for large and pairs all partitions. Selinger broadcasts the small side.
-- set spark.sql.sources.fileCompressionFactor=1000000
SELECT f.id FROM facts f JOIN spans s ON f.k BETWEEN s.low AND s.high
