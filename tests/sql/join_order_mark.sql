-- An answer of EXISTS that is a column.
SELECT f.id, u.id AS u, EXISTS (SELECT 1 FROM dims e WHERE e.k = f.k AND e.id < 40) AS known
FROM (SELECT * FROM facts WHERE id < 200) f
JOIN dupes u ON f.k = u.k
LEFT JOIN dims d ON f.big = d.big
WHERE d.id IS NULL OR d.id < 100
