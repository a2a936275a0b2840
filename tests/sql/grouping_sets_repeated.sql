SELECT k, s, grouping_id(), count(*), sum(k), min(big), max(day) FILTER (WHERE flag) FROM facts GROUP BY GROUPING SETS ((k, s), (s, k), (s), (), ())
