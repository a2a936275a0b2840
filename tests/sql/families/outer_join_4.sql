-- A full outer join with a filter on its left side is a left outer join.
SELECT a.id, b.id AS other FROM facts a FULL JOIN dims b ON a.id = b.id WHERE a.k >= 9
