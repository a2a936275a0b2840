-- The filter on k is not inferred for the right side of a semi join.
SELECT id FROM dims WHERE k > 20 AND k IN (SELECT k FROM dupes)
