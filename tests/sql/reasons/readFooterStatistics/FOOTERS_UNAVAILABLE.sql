-- run INSERT OVERWRITE DIRECTORY '${tmp}/t' USING csv SELECT id FROM range(1000)
-- run CREATE OR REPLACE TEMP VIEW no_parquet (id BIGINT) USING parquet OPTIONS (path '${tmp}/t')
SELECT * FROM no_parquet t JOIN items ON t.id = items.id
