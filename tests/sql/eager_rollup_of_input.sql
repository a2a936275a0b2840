-- The aggregated column is a grouping column, too.
SELECT f.k, d.flag, sum(f.k) AS total, count(f.k) AS n FROM facts f JOIN dims d ON f.big = d.big
GROUP BY CUBE (f.k, d.flag)
