SELECT f.id FROM facts f WHERE EXISTS (SELECT 1 FROM dupes b WHERE b.k = f.k AND b.id > f.id)
