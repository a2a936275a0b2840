SELECT count(*) FROM facts GROUP BY CUBE (id, k, big, s, d, day, flag)
