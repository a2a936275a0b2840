-- Computed for customer 1 too, the division might fail where it does not now.
-- set spark.selinger.eliminateGrouping.enabled=false
SELECT a.item, a.n, b.n FROM (SELECT item, customer, count(*) AS n FROM sales WHERE customer = 1 GROUP BY item, customer) a JOIN (SELECT item, customer, sum(10 div (amount + 1)) AS n FROM sales WHERE customer = 2 GROUP BY item, customer) b ON a.item = b.item
