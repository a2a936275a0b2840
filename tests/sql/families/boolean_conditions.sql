-- Conditions lose what is always true and what they say twice.
SELECT id, if(1 = 1, k, -1) AS a, CASE WHEN flag THEN 1 ELSE 2 END = 1 AS b FROM facts
WHERE (flag AND k > 1) OR (flag AND k > 1 AND id < 90)
UNION ALL SELECT id, k, flag FROM dims WHERE id <=> id
