-- stream dims
SELECT dims.id, t.name FROM dims JOIN (SELECT s.ticket, i.name FROM sales s LEFT JOIN items i ON s.item = i.id
ORDER BY s.ticket, s.item LIMIT 10) t ON t.ticket = dims.k
