-- Every sale has one item, and nothing of it is used.
SELECT a.amount FROM sales a JOIN items b ON a.item = b.id
