-- set spark.selinger.aggregate.reduceInputMinGain=0
SELECT d.id, a.n FROM dims d JOIN (SELECT k, sum(10 div (id + 1)) AS n FROM facts GROUP BY k) a ON d.k = a.k WHERE d.id < 9
