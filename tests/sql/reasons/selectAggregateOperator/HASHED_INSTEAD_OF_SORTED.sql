SELECT customer, max(string(item)) FROM sales GROUP BY customer
