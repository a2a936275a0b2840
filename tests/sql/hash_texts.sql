SELECT k, s, max(s), min(concat(s, day)), sort_array(collect_list(id)), count(*) FROM facts GROUP BY k, s
