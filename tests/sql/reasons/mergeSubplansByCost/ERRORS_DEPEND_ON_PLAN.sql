SELECT (SELECT sum(amount) FROM sales WHERE item = 1) AS one, (SELECT sum(10 div amount) FROM sales WHERE item = 2) AS two
