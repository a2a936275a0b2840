-- The average of each item is computed from a second scan of the table that the query reads anyway.
-- set spark.selinger.merge.minGain=0
SELECT s.ticket, s.amount FROM sales s WHERE s.amount > (SELECT avg(t.amount) FROM sales t WHERE t.item = s.item)
