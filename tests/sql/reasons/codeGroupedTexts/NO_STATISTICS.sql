-- set spark.selinger.readFooterStatistics.enabled=false
SELECT d.s, count(*) AS n FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.s
