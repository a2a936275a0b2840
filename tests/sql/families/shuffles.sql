-- Spark shuffles by k and day, and then by k. Selinger shuffles once, by k.
SELECT k, day, sum(n) OVER (PARTITION BY k ORDER BY day) FROM (SELECT k, day, count(*) AS n FROM facts GROUP BY k, day)
