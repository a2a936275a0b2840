SELECT k, count(*) FROM facts GROUP BY GROUPING SETS ((k), (k))
