-- The selective dimension is named last.
SELECT f.id, d.id AS d_id, s.id AS s_id, u.id AS u_id
FROM facts f JOIN dupes u ON f.flag = u.flag AND u.id < 20
JOIN dims d ON f.k = d.k
JOIN spans s ON d.id = s.id
WHERE s.id < 5
