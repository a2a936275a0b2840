SELECT id FROM facts WHERE year(day) = 2000 AND month(day) = 1 OR substr(s, 1, 1) = 'a'
