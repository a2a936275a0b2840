-- set spark.selinger.shareEstimates.enabled=true
-- set spark.sql.cbo.enabled=true
SELECT * FROM sales JOIN items ON sales.item = items.id WHERE items.category = 'Books'
