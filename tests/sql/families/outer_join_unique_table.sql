-- The ids of a table are unique, and no other column of it is used. Spark knows no keys of tables.
SELECT a.amount FROM sales a LEFT JOIN items b ON a.item = b.id
