-- A sort by a constant is left out.
SELECT id FROM (SELECT 'x' AS c, id FROM facts) ORDER BY c
