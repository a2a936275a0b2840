SELECT f.id FROM (SELECT * FROM facts WHERE k NOT IN (SELECT k FROM dims)) f
JOIN spans s ON f.id = s.id
UNION ALL SELECT f.id FROM facts f JOIN spans s ON f.id = s.id
WHERE f.k IN (SELECT k FROM dupes)
