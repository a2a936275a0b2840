-- The first two tables have no condition in common. Spark joins by conditions, Selinger also by estimated rows.
-- set spark.selinger.ordering.minGain=0
SELECT count(*), sum(inventory.quantity) FROM inventory, dates, sales
WHERE sales.item = inventory.item AND sales.sold = dates.day AND dates.year = 2000
