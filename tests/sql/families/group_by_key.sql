-- The id determines the name, but both are keys.
SELECT id, name, count(*) FROM items GROUP BY id, name
