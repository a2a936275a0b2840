SELECT count(*) FROM (
  SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.k AND d.id < 5
  WHERE coalesce(d.id, f.id) > 3) JOIN spans s USING (id)
