-- Functions of columns of both sides.
SELECT d.s, sum(f.k * d.k) AS product, sum(CASE WHEN d.flag THEN f.k END) AS chosen, max(f.k + d.k) AS most
FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.s
