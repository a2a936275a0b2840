-- Nothing is in an empty set, not even null.
SELECT id FROM dims WHERE k NOT IN (SELECT k FROM nothing)
