-- stream dims
SELECT dims.id, g.n FROM dims JOIN (SELECT i.id, i.name, count(*) AS n FROM sales s JOIN items i ON s.item = i.id
GROUP BY i.id, i.name) g ON g.id = dims.k
