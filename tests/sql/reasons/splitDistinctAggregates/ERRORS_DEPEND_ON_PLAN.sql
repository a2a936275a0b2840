SELECT k, count(DISTINCT s), count(DISTINCT big) FROM facts WHERE 1 / (id - 5) > 0 GROUP BY k
