SELECT k, count(*) AS n, max(day) AS day, min(x) AS x
FROM (SELECT k, day, count(*) AS n FROM facts GROUP BY k, day) a
FULL JOIN (SELECT if(k > 50, k, null) AS k, id AS x FROM facts WHERE id % 3 = 0) b USING (k)
FULL JOIN (SELECT k + 7 AS k FROM dims) c USING (k)
GROUP BY k
