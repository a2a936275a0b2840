SELECT /*+ BROADCAST(customers) */ city, avg(amount) FROM sales JOIN customers ON customer = id
GROUP BY city
