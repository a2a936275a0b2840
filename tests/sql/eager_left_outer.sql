-- The null-supplied side has the functions: some of them read nulls as something.
SELECT d.s, count(f.id) AS c, count(*) AS n, sum(f.k) AS total, avg(f.k) AS mean, max(f.day) AS last,
  sum(d.k) AS own, count(d.k) AS own_count
FROM dims d LEFT JOIN facts f ON d.k = f.k AND f.day > date'2000-01-01' GROUP BY d.s
