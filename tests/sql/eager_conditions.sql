-- Conditions on the other side of the join decide which parts count.
SELECT d.flag, sum(CASE WHEN d.k > 20 THEN f.k END) AS some, count(CASE WHEN d.k > 20 THEN f.k ELSE NULL END) AS n,
  avg(CASE WHEN d.day > date'2000-01-01' AND f.flag THEN f.k END) AS mean, sum(if(d.s = 'a', f.k, 0)) AS zero,
  max(if(d.k % 2 = 1, f.day, null)) AS last, sum(CASE WHEN d.s = 'b' THEN try_cast(f.k AS decimal(7,2)) END) AS short,
  sum(f.k) FILTER (WHERE d.s = 'b' AND f.flag AND f.day > d.day) AS both, count(CASE WHEN d.flag THEN 1 END) AS ones
FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.flag
