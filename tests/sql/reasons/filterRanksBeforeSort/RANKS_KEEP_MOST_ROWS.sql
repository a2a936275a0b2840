SELECT * FROM (SELECT id, k, rank() OVER (PARTITION BY id ORDER BY big DESC) AS place FROM facts) WHERE place <= 10
