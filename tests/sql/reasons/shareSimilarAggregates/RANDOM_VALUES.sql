SELECT a.item, a.n, b.n FROM (SELECT item, count(*) AS n FROM sales WHERE rand(7) < 0.5 GROUP BY item) a JOIN (SELECT item, count(*) AS n FROM sales GROUP BY item) b ON a.item = b.item
