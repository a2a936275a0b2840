-- set spark.selinger.shareEstimates.enabled=true
-- set spark.selinger.readFooterStatistics.enabled=false
SELECT * FROM sales JOIN items ON sales.item = items.id WHERE items.category = 'Books'
