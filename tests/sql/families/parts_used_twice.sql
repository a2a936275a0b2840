-- Spark inlines a CTE that is used with two filters. Selinger computes its groups once.
WITH t AS (SELECT item, amount, count(*) AS s FROM sales GROUP BY item, amount)
SELECT a.item, a.s, b.s FROM t a JOIN t b ON a.item = b.item WHERE a.amount = 1 AND b.amount = 2
