-- set spark.selinger.readFooterStatistics.enabled=false
SELECT count(*) FROM sales JOIN inventory ON sales.item = inventory.item
JOIN dates ON sales.sold = dates.day WHERE dates.year = 2000
