-- Subqueries that differ in their filters are computed together by Selinger.
SELECT (SELECT sum(amount) FROM sales WHERE item = 1) AS one, (SELECT count(*) FROM sales WHERE item = 2) AS two
