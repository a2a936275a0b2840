-- More than one row: an error from every operator.
SELECT d.id, (SELECT b.id FROM dupes b WHERE b.k = d.k) FROM dims d
