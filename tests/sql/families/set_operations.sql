-- INTERSECT becomes a semi join, EXCEPT an anti join, or a filter where both sides read the same rows.
-- set spark.selinger.aggregate.deduplicateMinGain=0
(SELECT id FROM items INTERSECT SELECT item FROM sales WHERE amount > 1)
UNION ALL (SELECT id FROM items EXCEPT SELECT item FROM inventory WHERE quantity < 300)
UNION ALL SELECT id FROM (SELECT id, color FROM items EXCEPT SELECT id, color FROM items WHERE color = 'red')
