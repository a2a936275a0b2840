-- A filter goes below a window, an aggregate, a projection and a union, into the scans.
SELECT * FROM (
  SELECT k, n, sum(n) OVER (PARTITION BY k) AS total FROM (
    SELECT k, count(*) AS n FROM (SELECT k FROM facts UNION ALL SELECT k FROM dims) GROUP BY k
  )
) WHERE k = 5
