-- The condition decides what is in each group.
SELECT a.item, a.n, b.n FROM (SELECT item, count(*) AS n FROM sales WHERE sold = 1 GROUP BY item) a JOIN (SELECT item, count(*) AS n FROM sales WHERE sold = 2 GROUP BY item) b ON a.item = b.item
