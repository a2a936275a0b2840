-- set spark.sql.sources.fileCompressionFactor=1000000
-- set spark.selinger.join.broadcastMaxBytes=100000
-- run INSERT OVERWRITE DIRECTORY '${tmp}/text' USING json SELECT cast(id AS int) AS k FROM range(300)
SELECT a.id FROM facts a JOIN json.`${tmp}/text` b ON a.k = b.k
