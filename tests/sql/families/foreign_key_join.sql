-- Every sale has an item and nothing of it is used, but the join stays.
SELECT a.amount FROM sales a JOIN items b ON a.item = b.id
