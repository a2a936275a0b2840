-- set spark.selinger.eliminateJoins.enabled=false
-- set spark.sql.cbo.enabled=true
-- set spark.sql.cbo.joinReorder.enabled=true
SELECT count(*) FROM sales LEFT JOIN inventory ON sales.item = inventory.item
LEFT JOIN dates ON sales.sold = dates.day
