SELECT * FROM sales JOIN items ON sales.item = items.id WHERE items.name LIKE '%bike%'
