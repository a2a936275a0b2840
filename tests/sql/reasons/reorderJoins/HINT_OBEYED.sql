SELECT /*+ MERGE(inventory) */ count(*) FROM sales JOIN inventory ON sales.item = inventory.item
JOIN dates ON sales.sold = dates.day
