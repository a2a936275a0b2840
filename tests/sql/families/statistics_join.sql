-- Spark takes a join for the product of its sides.
-- set spark.sql.sources.fileCompressionFactor=1000000
SELECT * FROM sales JOIN items ON sales.item = items.id WHERE items.color = 'red'
