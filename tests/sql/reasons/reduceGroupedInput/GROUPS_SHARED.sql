-- set spark.selinger.aggregate.reduceInputMinGain=0
WITH t AS (SELECT k, count(*) AS n FROM facts GROUP BY k)
SELECT a.k, a.n, b.n AS other FROM t a JOIN dims d ON a.k = d.k AND d.id < 9 CROSS JOIN t b
