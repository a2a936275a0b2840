SELECT k, s, count(*), sum(k) FROM nothing GROUP BY CUBE (k, s)
