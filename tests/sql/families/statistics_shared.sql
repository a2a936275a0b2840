-- Spark's own rules see the sizes that Selinger has estimated.
-- set spark.selinger.shareEstimates.enabled=true
SELECT * FROM sales JOIN items ON sales.item = items.id WHERE items.category = 'Books'
