SELECT s, flag, sum(big * 9223372036854) FROM facts GROUP BY ROLLUP (s, flag)
