-- Between the joins, columns are renamed and computed, on sides that are kept and on others.
SELECT j.one, j.less, j.third, x.id AS x, y.less AS y
FROM (
  SELECT a.id AS one, a.k AS third, a.id < b.id AS less, concat(a.s, b.s) AS both
  FROM (SELECT * FROM facts WHERE id < 200) a JOIN dupes b ON a.k = b.k
) j
JOIN (SELECT * FROM dims WHERE id < 30) x ON j.third = x.k
LEFT JOIN (
  SELECT c.id AS one, c.k IS NULL AS less FROM dims c JOIN nulls d ON c.id = d.id
) y ON j.one = y.one
