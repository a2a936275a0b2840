-- set spark.sql.session.timeZone=America/St_Johns
-- set spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS
-- run INSERT OVERWRITE DIRECTORY '${tmp}/times' USING parquet SELECT id, timestamp_seconds(1289000000 + id * 3600) AS t FROM range(200)
SELECT id FROM parquet.`${tmp}/times` WHERE date_trunc('day', t) = timestamp'2010-11-07 00:00:00'
