SELECT a.id AS a, b.low, c.id AS c
FROM (SELECT * FROM dims WHERE id < 40) a
JOIN spans b ON a.k BETWEEN b.low AND b.high
JOIN (SELECT * FROM dupes WHERE id < 30) c ON a.id = c.id
