-- set spark.selinger.aggregate.joinLaterMinGain=0
-- set spark.selinger.keys.maxRows=0
SELECT i.id, i.name, count(DISTINCT s.amount) AS amounts FROM sales s JOIN items i ON s.item = i.id GROUP BY i.id, i.name
