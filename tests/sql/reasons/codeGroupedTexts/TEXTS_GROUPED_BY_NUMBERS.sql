-- set spark.selinger.aggregate.codedTextsMinGain=0
SELECT i.name, s.sold, sum(s.amount) AS total FROM sales s JOIN items i ON s.item = i.id GROUP BY i.name, s.sold
