SELECT k, s, first(day) FROM facts GROUP BY ROLLUP (k, s)
