-- unset spark.sql.shuffle.partitions
-- set spark.sql.adaptive.advisoryPartitionSizeInBytes=1
SELECT customer, sum(amount) FROM sales GROUP BY customer
