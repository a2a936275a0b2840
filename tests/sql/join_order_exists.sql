SELECT f.id, u.id AS u
FROM (SELECT * FROM facts WHERE id < 400) f
JOIN dupes u ON f.k = u.k
JOIN dims m ON f.big = m.big
WHERE EXISTS (SELECT 1 FROM dims e WHERE e.k = f.k AND e.id < u.id)
  AND f.id IN (SELECT id FROM nulls WHERE id > 3)
  AND u.id NOT IN (SELECT id FROM dims WHERE id > 100)
  AND NOT EXISTS (SELECT 1 FROM dupes x WHERE x.id = m.id AND x.k = 3)
