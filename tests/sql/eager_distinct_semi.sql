SELECT DISTINCT f.s, f.flag FROM facts f
WHERE f.k IN (SELECT k FROM dims WHERE flag) AND NOT EXISTS (SELECT 1 FROM dupes b WHERE b.day = f.day AND b.k > f.k % 4)
