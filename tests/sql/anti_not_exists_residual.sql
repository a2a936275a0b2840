SELECT f.id, f.k FROM facts f WHERE NOT EXISTS (SELECT 1 FROM dupes b WHERE b.k = f.k AND b.d < f.d)
