SELECT d.s, sum(f.k) AS total, count(*) AS n FROM facts f JOIN dims d ON f.k = d.k AND f.day < d.day GROUP BY d.s
