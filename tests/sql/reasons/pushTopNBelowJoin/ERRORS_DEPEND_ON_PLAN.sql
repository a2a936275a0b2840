SELECT s.ticket, 10 DIV i.id AS q FROM sales s LEFT JOIN items i ON s.item = i.id AND i.id > 0 ORDER BY s.ticket, s.item LIMIT 10
