-- set spark.selinger.eliminateGrouping.enabled=false
-- Computed for all customers, the division might fail where it does not now.
SELECT a.item, a.n, b.n AS total FROM (SELECT item, customer, count(*) AS n FROM sales GROUP BY item, customer) a CROSS JOIN (SELECT max(10 div (amount + 1)) AS n FROM sales WHERE customer = 1) b
