-- set spark.selinger.sort.earlyTopNMinGain=0
SELECT s.amount, i.name FROM sales s LEFT JOIN items i ON s.item = i.id ORDER BY s.amount DESC, s.ticket, s.item LIMIT 10
