SELECT category, avg(amount) FROM (SELECT hash(item) AS h, amount FROM sales) s
JOIN (SELECT hash(id) AS h, category FROM items) i ON s.h = i.h GROUP BY category
