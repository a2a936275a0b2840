-- Spark knows the size of a file, but not its rows nor how many of them a filter keeps.
SELECT * FROM sales JOIN items ON sales.item = items.id WHERE items.name LIKE '%bike%' AND sales.amount > 3
