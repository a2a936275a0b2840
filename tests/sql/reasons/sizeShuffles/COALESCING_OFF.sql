-- unset spark.sql.shuffle.partitions
-- set spark.sql.adaptive.coalescePartitions.enabled=false
SELECT customer, sum(amount) FROM sales GROUP BY customer
