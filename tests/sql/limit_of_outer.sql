-- The limit is pushed to one side of the join; the order makes it certain.
SELECT f.id, d.id FROM facts f LEFT JOIN (SELECT k, max(id) AS id FROM dims GROUP BY k) d ON f.k = d.k ORDER BY f.id LIMIT 50
