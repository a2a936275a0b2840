SELECT id FROM facts WHERE NOT (year(day) = 1999 AND coalesce(flag, year(day) = 2000))
UNION ALL SELECT id FROM nulls WHERE year(day) <> 1999 OR k + 1 > 3
UNION ALL SELECT id FROM nothing WHERE year(at) = 1970
UNION ALL SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.k AND year(d.day) = 2000 WHERE year(f.day) = 1999
