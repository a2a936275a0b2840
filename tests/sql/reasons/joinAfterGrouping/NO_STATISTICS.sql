-- set spark.selinger.readFooterStatistics.enabled=false
SELECT i.id, i.name, count(*) AS n FROM sales s JOIN items i ON s.item = i.id GROUP BY i.id, i.name
