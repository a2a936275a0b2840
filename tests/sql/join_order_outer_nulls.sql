-- The second outer join may find partners for rows without any in the first: its condition is true
-- of nulls too.
SELECT f.id, n.id AS n, d.id AS d
FROM (SELECT * FROM facts WHERE id < 60) f
LEFT JOIN nulls n ON f.big = n.big
LEFT JOIN (SELECT * FROM dims WHERE id < 30) d ON n.k <=> d.k AND coalesce(n.id, f.id) = d.id
JOIN (SELECT * FROM dupes WHERE id < 40) u ON f.k = u.k
