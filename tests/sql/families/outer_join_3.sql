-- A right outer join with a filter on its left side is an inner join.
SELECT a.id, b.id AS other FROM facts a RIGHT JOIN dims b ON a.id = b.id WHERE a.k >= 9
