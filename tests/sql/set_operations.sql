-- Spark makes joins of these.
SELECT k, s FROM dims INTERSECT SELECT k, s FROM dupes UNION ALL (SELECT k, s FROM dims EXCEPT SELECT k, s FROM facts)
