-- set spark.selinger.join.broadcastMaxBytes=1
SELECT * FROM reasons a JOIN reasons b ON a.id = b.id
