-- set spark.sql.sources.fileCompressionFactor=1000000
SELECT * FROM facts a LEFT SEMI JOIN dims b ON a.k = b.k AND 100 / (a.id - b.id) > 0
