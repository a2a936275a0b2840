SELECT d.s, sum(coalesce(f.k, 7)) AS total, count(coalesce(f.k, 1)) AS n, sum(x.one) AS ones,
  count(x.one) AS one_count
FROM dims d LEFT JOIN facts f ON d.big = f.big
LEFT JOIN (SELECT k, 1 AS one FROM dupes WHERE k > 2) x ON x.k = d.k GROUP BY d.s
