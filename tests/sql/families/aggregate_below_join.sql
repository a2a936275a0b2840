-- Spark aggregates above the join. Selinger aggregates its input first.
-- set spark.selinger.aggregate.eager.minRows=0
SELECT city, avg(amount) AS average FROM sales JOIN customers ON customer = id GROUP BY city
