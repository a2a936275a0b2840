-- set spark.sql.ansi.enabled=false
-- set spark.selinger.join.broadcastMaxBytes=1
-- set spark.selinger.join.hashMemoryShare=1.0
SELECT count(*) FROM (SELECT id % 1000 AS k FROM range(3000000)) a JOIN (SELECT id % 1000 AS k FROM range(3000000)) b ON a.k = b.k
