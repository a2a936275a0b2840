-- Found by make fuzz SEED=1001 CASE=472: fails only with Selinger.
-- reorderJoins returned an invalid plan: two relations had a column of the same id
-- both: spark.sql.ansi.enabled=false
-- selinger: spark.selinger.mode=on
-- selinger: spark.selinger.ordering.minGain=0
-- compare: ordered=False zero_open=False
-- layout: t1 files=1 group_rows=50 dictionary=False integers=False source=parquet v2=False
CREATE OR REPLACE TEMPORARY VIEW t1 AS SELECT CAST(id AS INT) AS id, CAST(k AS INT) AS k, CAST(k2 AS DECIMAL(10,2)) AS k2, CAST(far AS INT) AS far, CAST(sm AS SMALLINT) AS sm, CAST(ts AS TIMESTAMP) AS ts, CAST(f AS BOOLEAN) AS f FROM VALUES
  ('83', '5', '60', '2147483646', NULL, '1999-12-21 12:30:00.000000', 'false'),
  ('101', '2', '56', '-1', '72', '1999-12-22 23:59:59.999999', 'true')
AS v(id, k, k2, far, sm, ts, f);

-- layout: t4 files=2 group_rows=50 dictionary=True integers=True source=parquet v2=False
CREATE OR REPLACE TEMPORARY VIEW t4 AS SELECT CAST(id AS INT) AS id, CAST(k AS SMALLINT) AS k, CAST(far AS INT) AS far, CAST(sm AS SMALLINT) AS sm, CAST(w AS DOUBLE) AS w, CAST(x AS DECIMAL(9,0)) AS x, CAST(ts AS TIMESTAMP) AS ts FROM VALUES
  ('217', '-2', '0', '12', '0.0', '-21', '1999-12-20 00:00:00.000000'),
  ('66', '-2', '-2', '78', '0.3333333333333333', '-21', '1999-12-20 00:00:00.000000'),
  ('6', '-2', '0', '35', '1.25', '-7', '1999-12-21 12:30:00.000000'),
  ('60', '-2', '0', '7', 'Infinity', '-2', '1999-12-21 12:30:00.000000'),
  ('184', '-2', '-2', '22', '0.0', '0', '1999-12-22 23:59:59.999999'),
  ('187', '-2', '-2147483648', '19', '-0.0', '5', '1999-12-23 23:59:59.999999'),
  ('156', '-1', '2', '55', '0.0', NULL, '1999-12-23 23:59:59.999999'),
  ('1', '-1', '2', '32', '-0.0', '7', '1999-12-24 00:00:00.000000'),
  ('194', '-1', '0', '13', '1.0', '7', '1999-12-25 12:30:00.000000'),
  ('15', '0', '2', '74', '-0.0', NULL, '1999-12-25 12:30:00.000000'),
  ('51', '0', '0', '13', 'NaN', NULL, '1999-12-26 12:30:00.000000'),
  ('161', '1', '2147483647', '63', '0.5', NULL, '1999-12-27 00:00:00.000000'),
  ('240', '3', '0', '25', '0.5', NULL, '1999-12-27 00:00:00.000000')
AS v(id, k, far, sm, w, x, ts);

SELECT 1 AS one FROM (SELECT DISTINCT (SELECT max(a5.id) AS c7 FROM t4 a5 WHERE (a5.sm = a3.sm)) AS c8 FROM t1 a3) v6 WHERE (v6.c8 <> 1);
