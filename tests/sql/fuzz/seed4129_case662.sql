-- Found by make fuzz SEED=4129 CASE=662: fails only with Selinger.
-- java.lang.ClassCastException: An error occurred while calling o3207.executedPlan. : java.lang.ClassCastException: class org.apache.spark.sql.catalyst.expressions.AttributeReference cannot be cast to class org.apache.spark.sql.catalyst.expressions.ListQuery (org.apache.spark.sql.catalyst.expressions.AttributeReference and org.apache.spark.sql.catalyst.expressions.ListQuery are in unnamed module of 
-- both: spark.sql.sources.fileCompressionFactor=1000000
-- selinger: spark.selinger.mode=on
-- selinger: spark.selinger.shareEstimates.enabled=true
-- compare: ordered=False zero_open=True
-- layout: t2 files=1 group_rows=50 dictionary=True integers=True source=parquet v2=False
CREATE OR REPLACE TEMPORARY VIEW t2 AS SELECT CAST(id AS INT) AS id FROM VALUES
  (NULL)
AS v(id)
WHERE false;

-- layout: t3 files=1 group_rows=1000 dictionary=False integers=True source=parquet v2=False
CREATE OR REPLACE TEMPORARY VIEW t3 AS SELECT CAST(d AS DOUBLE) AS d FROM VALUES
  (NULL)
AS v(d)
WHERE false;

-- layout: t5 files=1 group_rows=7 dictionary=False integers=False source=parquet v2=False
CREATE OR REPLACE TEMPORARY VIEW t5 AS SELECT CAST(d AS DOUBLE) AS d FROM VALUES
  (NULL)
AS v(d)
WHERE false;

WITH q3 AS (SELECT (SELECT max(a2.d) AS c4 FROM t5 a2) AS c5 FROM t3 a1)
SELECT 1 AS one FROM q3 a4 WHERE (a4.c5 NOT IN (SELECT 1 AS one FROM t2 a5));
