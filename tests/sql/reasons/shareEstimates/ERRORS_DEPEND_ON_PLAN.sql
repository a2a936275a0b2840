-- set spark.selinger.shareEstimates.enabled=true
SELECT * FROM sales JOIN items ON sales.item = items.id AND 1 / items.id > 0
