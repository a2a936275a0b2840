-- run INSERT OVERWRITE DIRECTORY '${tmp}/sold' USING parquet SELECT id % 50 AS item, id % 100 AS day, id AS sale FROM range(5000)
-- run INSERT OVERWRITE DIRECTORY '${tmp}/stock' USING parquet SELECT id % 50 AS s_item, id AS amount FROM range(4000)
-- run INSERT OVERWRITE DIRECTORY '${tmp}/days' USING parquet SELECT id AS d_day, id AS d_number FROM range(100)
SELECT count(*), sum(sale) FROM parquet.`${tmp}/sold` JOIN parquet.`${tmp}/days` ON day = d_day
JOIN parquet.`${tmp}/stock` ON item = s_item WHERE d_number = 7
