-- Orders through outer joins: with a filter that rejects nulls above one of them, and without.
SELECT f.id, d.s, u.k, e.amount
FROM (SELECT * FROM facts WHERE id < 300) f
LEFT JOIN dupes u ON f.k = u.k
LEFT JOIN dims d ON u.id = d.id
JOIN (SELECT * FROM dims WHERE id < 20) e ON f.k = e.k
