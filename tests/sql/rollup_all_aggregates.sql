SELECT k, s, flag, grouping_id() AS id, count(*), count(d), sum(k), avg(k), min(day), max(at), sum(d), bit_xor(big) FROM facts GROUP BY ROLLUP (k, s, flag)
