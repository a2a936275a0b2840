-- Spark hashes the name in each row. Selinger numbers the names first.
-- set spark.selinger.aggregate.codedTextsMinGain=0
-- set spark.selinger.pushAggregateBelowJoin.enabled=false
SELECT i.name, sum(s.amount) AS total FROM sales s JOIN items i ON s.item = i.id GROUP BY i.name
