SELECT k, id, rank() OVER (PARTITION BY k, flag ORDER BY s, id) FROM facts
