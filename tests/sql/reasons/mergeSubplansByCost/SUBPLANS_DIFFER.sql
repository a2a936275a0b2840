SELECT (SELECT sum(amount) FROM sales WHERE item = 1) AS one, (SELECT count(*) FROM items WHERE id = 2) AS two
