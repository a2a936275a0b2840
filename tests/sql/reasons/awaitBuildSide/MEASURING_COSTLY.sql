-- set spark.sql.sources.fileCompressionFactor=1000000
-- set spark.sql.autoBroadcastJoinThreshold=100000
SELECT f.id, g.n FROM facts f
LEFT JOIN (SELECT bigint(tag) AS t, count(*) AS n FROM (SELECT explode(sequence(1, 20000)) AS tag FROM nested WHERE k < 4) GROUP BY bigint(tag) HAVING count(*) > 2) g ON f.big = g.t
