-- run INSERT OVERWRITE DIRECTORY '${tmp}/t' USING parquet OPTIONS ('parquet.dictionary.page.size' '16384') SELECT string(abs(hash(id)) % 5000) AS k FROM range(60000)
SELECT * FROM (SELECT k, count(*) FROM parquet.`${tmp}/t` GROUP BY k) t JOIN items ON t.k = items.name
