SELECT id FROM facts WHERE year(day) = 2000 AND 100 / (id - 7) > 2 AND month(day) = 1
