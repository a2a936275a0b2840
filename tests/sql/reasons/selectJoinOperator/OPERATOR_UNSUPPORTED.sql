-- set spark.sql.sources.fileCompressionFactor=1000000
SELECT a.id FROM facts a JOIN dims b ON a.s COLLATE UTF8_LCASE = b.s COLLATE UTF8_LCASE
