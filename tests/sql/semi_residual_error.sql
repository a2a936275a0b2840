-- The first partner settles a row; the error is in a later one.
SELECT f.id FROM facts f LEFT SEMI JOIN dupes d ON f.k = d.k AND f.id / (d.id - 399) <> 0.5
