-- set spark.selinger.readFooterStatistics.enabled=false
SELECT d.id, a.n FROM range(9) d JOIN (SELECT id AS k, count(*) AS n FROM facts GROUP BY id) a ON d.id = a.k
