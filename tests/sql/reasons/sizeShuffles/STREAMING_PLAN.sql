-- set spark.sql.sources.fileCompressionFactor=1000000
-- stream dims
SELECT f.id FROM dims JOIN facts f ON dims.k = f.k
