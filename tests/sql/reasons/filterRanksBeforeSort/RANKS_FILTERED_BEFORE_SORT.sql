SELECT * FROM (SELECT id, k, rank() OVER (PARTITION BY flag ORDER BY big DESC) AS place FROM facts) WHERE place <= 10
