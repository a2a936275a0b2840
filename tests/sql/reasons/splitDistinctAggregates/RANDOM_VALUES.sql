SELECT k, count(DISTINCT s), count(DISTINCT big) FROM facts WHERE rand() < 0.5 GROUP BY k
