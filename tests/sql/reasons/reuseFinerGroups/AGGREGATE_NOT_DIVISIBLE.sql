SELECT a.item, a.n, b.n AS spread FROM (SELECT item, count(*) AS n FROM sales GROUP BY item) a CROSS JOIN (SELECT stddev(amount) AS n FROM sales) b
