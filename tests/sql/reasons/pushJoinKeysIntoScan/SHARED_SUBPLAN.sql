WITH c AS (SELECT a.s, sum(a.id) AS total FROM facts a JOIN dims b ON a.id = b.id GROUP BY a.s)
SELECT * FROM c WHERE total > (SELECT avg(total) FROM c)
