-- An outer join below an aggregation that counts rows.
SELECT a.color, count(*) FROM items a LEFT JOIN (SELECT DISTINCT item FROM sales) b ON a.id = b.item GROUP BY a.color
