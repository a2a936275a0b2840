SELECT item, sum(cast(amount AS decimal(12,2)) * cast(ticket AS decimal(12,2))) FROM sales GROUP BY item
