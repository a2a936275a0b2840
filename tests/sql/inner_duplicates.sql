-- Many rows for each key on both sides.
SELECT a.id, b.id FROM dupes a JOIN dupes b ON a.k = b.k AND a.id < b.id
