-- set spark.selinger.join.broadcastMaxBytes=1
-- set spark.selinger.join.hashMemoryShare=1.0
-- set spark.selinger.join.hashMemoryMargin=1
SELECT a.id, count(*) FROM range(3000000) a JOIN range(3000000) b ON a.id = b.id GROUP BY a.id
