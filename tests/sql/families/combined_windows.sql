-- Two windows over the same partitions are computed together.
SELECT id, a, count(id) OVER (PARTITION BY k) AS b FROM (SELECT id, k, sum(id) OVER (PARTITION BY k) AS a FROM dims)
