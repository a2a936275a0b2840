-- Null meets null.
SELECT a.id, b.id FROM nulls a JOIN dims b ON a.k <=> b.k
