SELECT id, k, count(*) FROM facts GROUP BY GROUPING SETS ((id, k), (id))
