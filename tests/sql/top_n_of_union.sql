SELECT id, s, other FROM (
  SELECT f.id, f.s, d.day AS other FROM facts f LEFT JOIN dims d ON f.k = d.id
  UNION ALL SELECT d.id - 1000, d.s, n.day FROM nulls n RIGHT JOIN dims d ON n.k <=> d.k AND n.id = d.id
) ORDER BY id DESC LIMIT 30
