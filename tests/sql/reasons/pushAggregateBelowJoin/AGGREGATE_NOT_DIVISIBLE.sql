SELECT city, stddev(amount) FROM sales JOIN customers ON customer = id GROUP BY city
