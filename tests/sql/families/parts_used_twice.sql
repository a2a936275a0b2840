-- Spark inlines a CTE that is used with two filters. Selinger computes its groups once.
WITH t AS (SELECT item, customer, sum(amount) AS s FROM sales GROUP BY item, customer)
SELECT a.item, a.s, b.s FROM t a JOIN t b ON a.item = b.item WHERE a.customer = 1 AND b.customer = 2
