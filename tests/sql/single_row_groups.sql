-- Each group has one row: the functions are those of a row, also of nulls, filters and empty inputs.
SELECT id, s, count(*) AS n, count(k) AS ks, count(DISTINCT s) AS texts, sum(k) AS total, sum(DISTINCT big) AS large,
  sum(amount) AS amounts, avg(k) AS mean, min(day) AS first_day, max(at) AS last_time, max_by(s, big) AS largest,
  count(*) FILTER (WHERE flag) AS flags, max(k) FILTER (WHERE s > 'a') AS some, any_value(d) AS number, 1 + max(k) AS next
FROM dims GROUP BY id, s
UNION ALL SELECT id, max(s), count(*), 0, 0, 0, 0, 0, 0, null, null, null, 0, 0, 0, 0 FROM nothing GROUP BY id
UNION ALL SELECT k, null, count(*), 1, 1, 1, 1, 1, 1, null, null, null, 1, 1, 1, 1 FROM nulls GROUP BY k
