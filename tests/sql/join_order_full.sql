SELECT a.id AS a, b.id AS b, c.id AS c, d.id AS d
FROM (SELECT * FROM dims WHERE id < 40) a
FULL JOIN (SELECT * FROM dims WHERE id BETWEEN 20 AND 60) b ON a.k = b.k
FULL JOIN (SELECT * FROM dupes WHERE id < 30) c ON b.k = c.k
LEFT JOIN (SELECT * FROM nulls WHERE id < 30) d ON c.id = d.id
