-- set spark.selinger.eliminateJoins.enabled=false
-- run INSERT OVERWRITE DIRECTORY '${tmp}/t' USING parquet SELECT /*+ REPARTITION(4) */ id FROM range(1000)
SELECT * FROM parquet.`${tmp}/t` t JOIN items ON t.id = items.id
