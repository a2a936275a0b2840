SELECT customer, sum(amount) FROM sales GROUP BY customer
