-- set spark.selinger.keys.maxRows=0
SELECT DISTINCT id, name FROM items
