-- More than one row: an error from every operator.
SELECT o.id, (SELECT b.id FROM dupes b WHERE b.k = o.k) FROM facts o
