-- Two DISTINCT copy each row for each of them.
-- set spark.selinger.aggregate.splitDistinctMinGain=0
SELECT k, count(DISTINCT id), count(DISTINCT big) FROM facts GROUP BY k
