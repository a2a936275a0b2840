-- set spark.selinger.shareEstimates.enabled=true
-- set spark.selinger.samplePredicates.enabled=false
SELECT * FROM sales JOIN items ON sales.item = items.id WHERE items.name LIKE '%7%'
