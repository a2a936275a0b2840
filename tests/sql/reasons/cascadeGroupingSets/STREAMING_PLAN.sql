-- stream dims
-- set spark.sql.streaming.unsupportedOperationCheck=false
SELECT k, s, count(*) FROM dims GROUP BY ROLLUP (k, s)
