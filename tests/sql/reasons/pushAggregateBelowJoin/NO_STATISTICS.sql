-- set spark.selinger.readFooterStatistics.enabled=false
SELECT city, avg(amount) FROM sales JOIN customers ON customer = id GROUP BY city
