-- Without keys and without rows there is one group.
-- set spark.selinger.aggregate.splitDistinctMinGain=0
SELECT count(DISTINCT k), count(DISTINCT s), sum(DISTINCT big), count(*), min(day), sum(id) FROM nothing
