-- Each filter alone leaves little of its join; together they leave nothing out.
-- set spark.selinger.merge.minGain=0.6
SELECT a.n, b.n FROM (SELECT count(*) AS n FROM sales JOIN inventory ON sales.item <=> inventory.item WHERE sales.ticket = 1) a CROSS JOIN (SELECT count(*) AS n FROM sales JOIN inventory ON sales.item <=> inventory.item WHERE inventory.quantity = 2) b
