-- unset spark.sql.shuffle.partitions
-- run INSERT OVERWRITE DIRECTORY '${tmp}/text' USING json SELECT cast(id AS int) AS k FROM range(300)
SELECT k, count(*) FROM json.`${tmp}/text` GROUP BY k
