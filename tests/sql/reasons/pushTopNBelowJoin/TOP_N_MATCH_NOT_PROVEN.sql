-- set spark.selinger.sort.earlyTopNMinGain=0
-- set spark.selinger.keys.maxRows=0
SELECT s.ticket, i.name FROM sales s JOIN items i ON s.item = i.id ORDER BY s.ticket, s.item LIMIT 10
