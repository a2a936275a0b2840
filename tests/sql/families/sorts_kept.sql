-- A sort stays below another one that begins with a constant.
SELECT * FROM (SELECT 'x' AS c, k, count(*) AS n FROM facts GROUP BY k ORDER BY n) ORDER BY c, k
