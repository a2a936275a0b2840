-- The id determines the name, but both are keys, and rows are grouped although each is a group of its own.
SELECT id, name, count(*) FROM items GROUP BY id, name
