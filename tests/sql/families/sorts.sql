-- Sorts that nobody sees are left out: below a GROUP BY and below another sort.
SELECT * FROM (SELECT k, count(*) AS n FROM (SELECT k FROM facts ORDER BY s) GROUP BY k ORDER BY n) ORDER BY k
