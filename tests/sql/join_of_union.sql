SELECT u.source, u.id, d.id FROM (SELECT 'a' AS source, id, k FROM dupes UNION ALL SELECT 'b', id, k FROM nulls) u LEFT JOIN dims d ON u.k = d.k
