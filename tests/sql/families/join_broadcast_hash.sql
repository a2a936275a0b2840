-- Spark takes the files for large and sorts. Selinger knows their rows and broadcasts.
-- set spark.sql.sources.fileCompressionFactor=1000000
SELECT a.id, b.id FROM facts a JOIN dims b ON a.k = b.k
