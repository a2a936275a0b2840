SELECT f.id FROM facts f WHERE f.id % 50 = 0 OR f.k IN (SELECT k FROM dupes WHERE flag) OR EXISTS (SELECT 1 FROM spans s WHERE s.id = f.id AND s.low > 30)
