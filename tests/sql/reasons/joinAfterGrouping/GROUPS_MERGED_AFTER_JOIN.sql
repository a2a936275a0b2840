-- set spark.selinger.aggregate.joinLaterMinGain=0
-- set spark.selinger.keys.maxRows=0
SELECT i.id, i.name, sum(s.amount) AS total FROM sales s JOIN items i ON s.item = i.id GROUP BY i.id, i.name
