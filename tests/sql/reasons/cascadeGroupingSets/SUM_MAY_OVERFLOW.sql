SELECT k, flag, sum(amount) FROM facts GROUP BY ROLLUP (k, flag)
