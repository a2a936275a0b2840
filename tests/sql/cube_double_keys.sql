SELECT d, flag, k, count(*), sum(k) FROM facts GROUP BY CUBE (d, flag, k)
