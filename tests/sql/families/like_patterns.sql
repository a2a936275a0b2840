-- LIKE becomes a plain search in a text, whose share of the rows Selinger measures on a sample.
SELECT * FROM sales JOIN items ON sales.item = items.id WHERE items.name LIKE '%bike%'
