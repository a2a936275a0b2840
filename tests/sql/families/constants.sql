-- Constants are computed once, put in place of columns that are equal to them, and drop what is null.
-- set spark.sql.ansi.enabled=false
SELECT 1 + id + 2 + (1 + 1) AS a, concat(s, concat('x', s)) AS b, coalesce(null, k) AS c
FROM facts WHERE id = 5 AND big > 100 + id AND if(flag, 1 < 2, null)
