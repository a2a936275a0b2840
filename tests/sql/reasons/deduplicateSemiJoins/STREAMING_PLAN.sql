-- stream dims
SELECT id FROM dims WHERE k IN (SELECT k FROM facts)
