-- set spark.sql.shuffle.partitions=201
SELECT item, customer, sum(cast(amount AS int)) FROM sales GROUP BY ROLLUP (item, customer)
