-- set spark.sql.autoBroadcastJoinThreshold=10485760
SELECT a.id, b.id FROM facts a JOIN dims b ON a.k = b.k
