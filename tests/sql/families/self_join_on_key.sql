-- A join of a table with itself by a unique key; of one place only the key is used.
SELECT a.id, b.color FROM items a JOIN items b ON a.id = b.id
