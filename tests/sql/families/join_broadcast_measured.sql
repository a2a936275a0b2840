-- Whether a side is small is known only when it has been read: Selinger shuffles it first.
-- set spark.sql.sources.fileCompressionFactor=1000000
-- set spark.selinger.join.broadcastMaxBytes=100000
SELECT a.id, b.tag FROM facts a
JOIN (SELECT k, tag FROM nested LATERAL VIEW explode(sequence(1, 2)) t AS tag WHERE point.x = 1) b ON a.k = b.k
