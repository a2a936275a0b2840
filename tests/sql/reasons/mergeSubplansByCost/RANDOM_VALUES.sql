SELECT a.one, b.two FROM (SELECT sum(amount) AS one FROM sales WHERE item = 1) a CROSS JOIN (SELECT sum(amount * rand(7)) AS two FROM sales WHERE item = 2) b
