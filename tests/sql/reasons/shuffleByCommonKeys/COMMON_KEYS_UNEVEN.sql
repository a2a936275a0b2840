-- set spark.sql.adaptive.coalescePartitions.minPartitionSize=1
SELECT flag, day, sum(n) OVER (PARTITION BY flag ORDER BY day) FROM (SELECT flag, day, count(*) AS n FROM facts GROUP BY flag, day)
