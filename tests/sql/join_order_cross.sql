SELECT a.id AS a, b.id AS b, c.id AS c
FROM (SELECT * FROM dims WHERE id < 10) a
CROSS JOIN (SELECT * FROM nulls WHERE id < 10) b
JOIN (SELECT * FROM facts WHERE id < 300) c ON c.k = a.k
LEFT JOIN dupes d ON d.id = c.id AND d.k = 2
