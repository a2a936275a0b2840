-- A full outer join with filters on both sides is an inner join.
SELECT a.id, b.id AS other FROM facts a FULL JOIN dims b ON a.id = b.id WHERE a.k >= 9 AND b.k >= 20
