-- set spark.sql.sources.fileCompressionFactor=1000000
-- set spark.selinger.join.broadcastMaxBytes=100000
SELECT a.id, b.tag FROM facts a LEFT JOIN (SELECT k, tag FROM nested LATERAL VIEW explode(sequence(1, 2)) t AS tag WHERE point.x = 1) b ON a.k = b.k
UNION ALL
SELECT a.id, b.tag FROM dupes a LEFT JOIN (SELECT k, tag FROM nested LATERAL VIEW explode(sequence(1, 2)) t AS tag WHERE point.x = 1) b ON a.k = b.k
