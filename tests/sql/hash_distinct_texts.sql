SELECT k, count(DISTINCT s), max(s), sum(cast(id AS decimal(12, 2)) * 2), max(s) FILTER (WHERE flag)
FROM facts GROUP BY k
