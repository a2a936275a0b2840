-- set spark.selinger.readFooterStatistics.enabled=false
SELECT k, day, sum(n) OVER (PARTITION BY k ORDER BY day) FROM (SELECT k, day, count(*) AS n FROM facts GROUP BY k, day)
