-- set spark.selinger.aggregate.deduplicateMinGain=0
SELECT name FROM items WHERE id IN (SELECT item FROM sales WHERE amount > 1)
