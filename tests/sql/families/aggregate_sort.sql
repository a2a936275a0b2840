-- The maximum of a text cannot be changed in place: Spark sorts, Selinger hashes.
SELECT customer, max(string(item)) FROM sales GROUP BY customer
