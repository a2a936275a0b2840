-- set spark.sql.ansi.enabled=true
SELECT id FROM facts WHERE 100 / (id + 1) > 2 AND year(day) = 2000
