-- The total is computed from the sums of the groups.
-- set spark.selinger.merge.minGain=0
SELECT item, sum(amount) AS s FROM sales GROUP BY item HAVING sum(amount) > (SELECT sum(amount) * 0.01 FROM sales)
