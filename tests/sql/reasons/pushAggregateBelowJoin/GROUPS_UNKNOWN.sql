SELECT category, avg(amount) FROM (SELECT concat(item, 'x') AS h, amount FROM sales) s
JOIN (SELECT concat(id, 'x') AS h, category FROM items) i ON s.h = i.h GROUP BY category
