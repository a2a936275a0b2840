-- A function of a column stays in the filter, so that the files cannot skip rows by it.
SELECT id FROM facts WHERE year(day) = 2000
