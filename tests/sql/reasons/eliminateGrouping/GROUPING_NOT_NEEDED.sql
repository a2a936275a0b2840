SELECT DISTINCT id, name FROM items
