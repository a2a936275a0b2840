-- set spark.selinger.eliminateJoins.enabled=false
SELECT /*+ MERGE(inventory) */ count(*) FROM sales JOIN inventory ON sales.item = inventory.item
JOIN dates ON sales.sold = dates.day
