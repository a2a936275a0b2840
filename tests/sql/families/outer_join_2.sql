-- A left outer join with a filter on its right side is an inner join.
SELECT a.s, b.s AS other FROM facts a LEFT JOIN dims b ON a.id = b.id WHERE b.k >= 20
