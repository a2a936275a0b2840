-- set spark.sql.exchange.reuse=false
SELECT a.item, a.n, b.n AS total FROM (SELECT item, count(*) AS n FROM sales GROUP BY item) a CROSS JOIN (SELECT count(*) AS n FROM sales) b
