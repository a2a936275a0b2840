-- One key is enough: the others follow.
SELECT a.id, b.id AS b_id, c.id AS c_id
FROM dims a JOIN dupes b ON a.k = b.k JOIN nulls c ON b.id = c.id AND a.id > c.id
JOIN dims e ON a.k = e.k AND b.k = e.k
