-- set spark.selinger.ordering.minGain=0
-- set spark.sql.autoBroadcastJoinThreshold=-1
-- run INSERT OVERWRITE DIRECTORY '${tmp}/sold' USING parquet SELECT id % 50 AS item, id % 100 AS day, id AS sale FROM range(5000)
-- run INSERT OVERWRITE DIRECTORY '${tmp}/stock' USING parquet SELECT id % 50 AS s_item, id AS amount FROM range(4000)
-- run INSERT OVERWRITE DIRECTORY '${tmp}/days' USING parquet SELECT id AS d_day, id AS d_number FROM range(100)
SELECT sale, d_number FROM parquet.`${tmp}/stock` JOIN parquet.`${tmp}/days` ON amount = d_day
JOIN parquet.`${tmp}/sold` ON item = s_item WHERE sale = 7
UNION ALL
SELECT sale, d_number FROM parquet.`${tmp}/stock` JOIN parquet.`${tmp}/days` ON amount = d_day
JOIN parquet.`${tmp}/sold` ON item = s_item WHERE sale = 9
