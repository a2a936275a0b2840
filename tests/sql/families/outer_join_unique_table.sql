-- The ids of a table are unique, but Spark knows no keys of tables, so the join stays.
SELECT a.amount FROM sales a LEFT JOIN items b ON a.item = b.id
