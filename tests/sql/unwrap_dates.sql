SELECT id, day FROM facts
WHERE year(day) = 2000 AND month(day) = 1 AND dayofmonth(day) < 20
   OR year(day) IN (1998, 1999) AND quarter(day) = 4
   OR NOT (year(day) <> 2001)
   OR trunc(day, 'week') = date'2000-01-10'
   OR date_add(day, 3) = date'2000-01-09'
   OR datediff(date'2000-01-30', day) <= 2
