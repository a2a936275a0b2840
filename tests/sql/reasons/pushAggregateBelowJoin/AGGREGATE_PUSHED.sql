SELECT city, avg(amount) AS average FROM sales JOIN customers ON customer = id GROUP BY city
