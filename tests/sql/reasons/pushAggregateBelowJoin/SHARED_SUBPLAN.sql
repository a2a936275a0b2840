-- set spark.selinger.shareSimilarAggregates.enabled=false
SELECT city, avg(amount) FROM sales JOIN customers ON customer = id GROUP BY city
UNION ALL SELECT city, max(amount) FROM sales JOIN customers ON customer = id GROUP BY city
