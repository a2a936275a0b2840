-- Plans of subqueries are optimized before they become joins.
SELECT o.id, (SELECT sum(f.k) FROM facts f JOIN dims d ON f.k = d.k WHERE d.s = o.s) AS total,
  (SELECT avg(f.k) FROM facts f JOIN dims d ON f.k = d.k) AS mean
FROM dupes o WHERE o.k IN (
  SELECT f.k FROM facts f JOIN (SELECT DISTINCT k FROM dims) d ON f.k = d.k GROUP BY f.k HAVING count(*) > 2)
