-- A full outer join with a filter on its right side is a right outer join.
SELECT a.id, b.id AS other FROM facts a FULL JOIN dims b ON a.id = b.id WHERE b.k >= 20
