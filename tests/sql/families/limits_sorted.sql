-- ORDER BY with LIMIT is not pushed to the preserved side of an outer join.
SELECT a.id, b.id AS other FROM dims a LEFT JOIN items b ON a.id = b.id ORDER BY a.id LIMIT 5
