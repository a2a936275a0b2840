-- Nothing random decides here which rows are grouped.
SELECT d.s, sum(f.k) AS total FROM facts f JOIN dims d ON f.k = d.k WHERE rand(3) >= 0 GROUP BY d.s
