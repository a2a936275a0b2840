-- Sorts that nobody sees are left out: below a GROUP BY, below another sort, and by a constant.
SELECT * FROM (
  SELECT c, k, count(*) AS n FROM (SELECT 'x' AS c, k FROM facts ORDER BY s) GROUP BY c, k ORDER BY n
) ORDER BY c, k
