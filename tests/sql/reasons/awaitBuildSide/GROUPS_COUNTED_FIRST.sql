-- set spark.sql.sources.fileCompressionFactor=1000000
-- set spark.sql.autoBroadcastJoinThreshold=100000
SELECT count(*), sum(r.id) FROM range(800000) r
LEFT SEMI JOIN (SELECT bigint(tag) AS t FROM (SELECT explode(sequence(1, 20000)) AS tag FROM nested WHERE k < 4) GROUP BY bigint(tag) HAVING max(tag) % 1000 = 0) g ON r.id = g.t
