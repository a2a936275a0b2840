-- Scans read only the columns that are used, also below unions and aggregates, and only the fields of structs.
SELECT k FROM (
  SELECT k, s, big FROM facts
  UNION ALL SELECT k, max(s), max(big) FROM dims GROUP BY k
  UNION ALL SELECT point.x, 'a', 1L FROM nested
)
