SELECT count(*) FROM (
  SELECT DISTINCT (SELECT max(d.id) FROM dims d WHERE d.k = f.k) AS newest FROM facts f)
WHERE newest <> 1
