SELECT d.id, a.n FROM range(30000000) d JOIN (SELECT id AS k, count(*) AS n FROM range(50000000) GROUP BY id) a ON d.id = a.k WHERE a.n < 0
