-- set spark.selinger.readFooterStatistics.enabled=false
SELECT s.ticket, i.name FROM sales s LEFT JOIN items i ON s.item = i.id ORDER BY s.ticket, s.item LIMIT 10
