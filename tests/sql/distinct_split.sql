-- Several DISTINCT, with nulls, NaN and -0.0, FILTER, and functions without DISTINCT.
-- set spark.selinger.aggregate.splitDistinctMinGain=0
SELECT k, count(DISTINCT s), count(DISTINCT d), sum(DISTINCT big), count(DISTINCT day, flag),
  count(DISTINCT s) FILTER (WHERE flag), count(*), sum(amount), max(s)
FROM facts GROUP BY k
