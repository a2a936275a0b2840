SELECT k, id, sum(big) OVER (PARTITION BY k ORDER BY id) FROM facts
