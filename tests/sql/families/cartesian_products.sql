-- A join without a condition is refused if the user does not want it.
-- set spark.sql.crossJoin.enabled=false
SELECT count(*) FROM dupes a, nulls b
