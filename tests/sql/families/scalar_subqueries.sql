-- Subqueries over the same rows are computed together.
SELECT (SELECT sum(amount) FROM sales) AS one, (SELECT count(*) FROM sales) AS two
