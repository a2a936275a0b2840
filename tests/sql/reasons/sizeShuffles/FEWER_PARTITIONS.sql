-- unset spark.sql.shuffle.partitions
SELECT customer, sum(amount) FROM sales GROUP BY customer
