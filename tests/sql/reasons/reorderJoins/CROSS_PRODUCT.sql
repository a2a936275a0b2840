-- set spark.sql.crossJoin.enabled=false
SELECT count(*) FROM sales CROSS JOIN inventory
JOIN dates ON sales.sold = dates.day WHERE dates.year = 2000
