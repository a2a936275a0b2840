-- set spark.selinger.stats.location=${tmp}/store
-- run INSERT OVERWRITE DIRECTORY '${tmp}/t/p=1' USING parquet SELECT id FROM range(1000)
-- run SELECT * FROM selinger_analyze('${tmp}/t', columns => 'id')
-- run INSERT OVERWRITE DIRECTORY '${tmp}/t/p=1' USING parquet SELECT id FROM range(50)
SELECT * FROM parquet.`${tmp}/t` t JOIN items ON t.id = items.id
