-- stream facts
SELECT id FROM facts WHERE year(day) = 2000
