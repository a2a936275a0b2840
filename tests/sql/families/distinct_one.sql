-- One DISTINCT takes four aggregations.
SELECT k, count(DISTINCT id), sum(id) FROM facts GROUP BY k
