SELECT flag, s, count(*) FROM facts GROUP BY ROLLUP (flag, s)
