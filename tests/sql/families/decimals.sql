-- Spark sums narrow decimals in longs. Selinger computes wider ones and their products in machine integers, too.
SELECT item, sum(cast(amount AS decimal(7,2))), sum(cast(amount AS decimal(12,2)) * cast(ticket AS decimal(12,2)))
FROM sales GROUP BY item
