SELECT k, flag, min(s) FROM facts GROUP BY ROLLUP (k, flag)
