-- Spark infers the same IN for both sides. Selinger looks up the keys of the smaller side only.
SELECT f.id FROM facts f JOIN dims d ON f.k = d.k WHERE f.k IN (SELECT k FROM dupes)
