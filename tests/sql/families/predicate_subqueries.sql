-- IN and EXISTS become semi and anti joins, whose right side Selinger deduplicates.
-- set spark.selinger.aggregate.deduplicateMinGain=0
SELECT name FROM items WHERE id IN (SELECT item FROM sales WHERE amount > 1)
AND NOT EXISTS (SELECT 1 FROM inventory WHERE inventory.item = items.id AND inventory.quantity > 890)
