SELECT id FROM facts WHERE 100 / (id - 7) > 2 AND year(day) = 2000
