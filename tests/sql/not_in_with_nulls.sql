-- One null in the subquery: no row at all.
SELECT id FROM facts WHERE k NOT IN (SELECT k FROM dims)
