-- set spark.selinger.eliminateJoins.enabled=false
SELECT category, count(*) FROM inventory JOIN items ON quantity = id GROUP BY category
