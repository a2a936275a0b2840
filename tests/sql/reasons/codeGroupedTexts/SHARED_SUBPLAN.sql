-- set spark.selinger.aggregate.codedTextsMinGain=0
-- set spark.selinger.pushAggregateBelowJoin.enabled=false
SELECT d.s, sum(f.big) AS n FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.s
UNION ALL SELECT max(d.s), f.big FROM facts f JOIN dims d ON f.k = d.k GROUP BY f.big
