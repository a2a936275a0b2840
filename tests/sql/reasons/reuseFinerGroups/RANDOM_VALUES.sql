SELECT a.item, a.n, b.n AS total FROM (SELECT item, count(*) AS n FROM sales WHERE rand(7) < 0.5 GROUP BY item) a CROSS JOIN (SELECT count(*) AS n FROM sales) b
