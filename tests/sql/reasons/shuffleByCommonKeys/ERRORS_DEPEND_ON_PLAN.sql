SELECT k, day, sum(n) OVER (PARTITION BY k ORDER BY day) FROM (SELECT k, day, sum(1 / (id + 1)) AS n FROM facts GROUP BY k, day)
