-- set spark.selinger.eliminateJoins.enabled=false
SELECT s.item, i.name, count(*) AS n FROM sales s JOIN items i ON s.item = i.id GROUP BY s.item, i.name
UNION ALL SELECT s.item, max(i.name), 1 FROM sales s JOIN items i ON s.item = i.id GROUP BY s.item
