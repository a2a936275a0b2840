-- Sketches of each file, from one pass over the data, are merged for the files that are read.
-- set spark.selinger.stats.location=${tmp}/store
-- run INSERT OVERWRITE DIRECTORY '${tmp}/t/p=1' USING parquet SELECT id FROM range(1000)
-- run SELECT * FROM selinger_analyze('${tmp}/t', columns => 'id')
SELECT * FROM parquet.`${tmp}/t` t JOIN items ON t.id = items.id
