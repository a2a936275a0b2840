-- unset spark.sql.shuffle.partitions
-- Both sides of the join must have the same partitions, and the hint asks for those of one.
SELECT /*+ MERGE(i) */ count(*) FROM (SELECT /*+ REPARTITION(item) */ item, amount FROM sales) s
JOIN inventory i ON s.item = i.item
