-- A limit goes to the preserved side of an outer join.
SELECT count(*) FROM (SELECT a.id, b.s FROM facts a LEFT JOIN dims b ON a.id = b.k LIMIT 5)
