WITH totals AS (SELECT k, day, count(*) AS n FROM facts GROUP BY k, day)
SELECT k, day, sum(n) OVER (PARTITION BY k ORDER BY day) FROM totals
UNION ALL
SELECT k, day, max(n) OVER (PARTITION BY k ORDER BY day) FROM totals
