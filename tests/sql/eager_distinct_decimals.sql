SELECT f.amount, d.k, count(*) AS n FROM (SELECT DISTINCT f.amount, f.s, f.big FROM facts f JOIN dims d ON f.k = d.k) f JOIN dims d ON f.big = d.big GROUP BY f.amount, d.k
