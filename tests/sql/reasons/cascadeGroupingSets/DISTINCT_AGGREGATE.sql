SELECT k, s, count(DISTINCT day) FROM facts GROUP BY ROLLUP (k, s)
