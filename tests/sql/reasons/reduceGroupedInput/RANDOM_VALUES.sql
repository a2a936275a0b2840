-- set spark.selinger.aggregate.reduceInputMinGain=0
SELECT d.id, a.n FROM dims d JOIN (SELECT k, count(*) AS n FROM facts WHERE rand(3) < 0.5 GROUP BY k) a ON d.k = a.k WHERE d.id < 9
