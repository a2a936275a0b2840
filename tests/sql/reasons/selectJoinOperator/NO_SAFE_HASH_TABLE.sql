-- set spark.selinger.join.broadcastMaxBytes=1
-- set spark.selinger.join.hashMemoryShare=0.0000001
SELECT a.id, b.id FROM (SELECT id FROM range(2000000000)) a JOIN (SELECT id FROM range(2000000)) b ON a.id = b.id
