SELECT f.id, u.id AS u, d.s
FROM (SELECT * FROM facts WHERE id < 400) f
JOIN dupes u ON f.k = u.k
LEFT JOIN dims d ON f.big = d.big
LEFT SEMI JOIN (SELECT * FROM dims WHERE id < 30) e ON f.k = e.k
LEFT ANTI JOIN nulls n ON f.id = n.id AND u.id > n.id
