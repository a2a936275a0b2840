-- A limit goes below a union and to the preserved side of an outer join; of two limits the smaller one stays.
SELECT count(*) FROM (SELECT * FROM (
  SELECT id FROM (SELECT a.id FROM facts a LEFT JOIN dims b ON a.id = b.k) UNION ALL SELECT id FROM dupes
  LIMIT 9
) LIMIT 5)
