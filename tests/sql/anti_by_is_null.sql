-- The old way to write an anti join, and what is left of an outer join's nulls.
SELECT f.id, x.id FROM facts f LEFT JOIN dims d ON f.k = d.k LEFT JOIN dupes x ON x.id = f.id WHERE d.k IS NULL
