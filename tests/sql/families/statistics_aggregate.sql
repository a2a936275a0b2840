-- Spark takes an aggregation for as large as its input, so that the shuffle has its default partitions.
-- unset spark.sql.shuffle.partitions
SELECT customer, sum(amount) FROM sales GROUP BY customer
