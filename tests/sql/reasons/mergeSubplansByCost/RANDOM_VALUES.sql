SELECT (SELECT sum(amount) FROM sales WHERE item = 1) AS one, (SELECT count(*) FROM sales WHERE rand(7) < 0.5) AS two
