-- set spark.sql.optimizer.windowGroupLimitThreshold=5000
SELECT * FROM (SELECT id, rank() OVER (ORDER BY big) AS place FROM (SELECT * FROM facts UNION ALL SELECT * FROM facts)) WHERE place <= 4500
