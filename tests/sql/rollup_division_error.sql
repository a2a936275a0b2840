SELECT s, flag, sum(k / (id - 7)) FROM facts GROUP BY ROLLUP (s, flag)
