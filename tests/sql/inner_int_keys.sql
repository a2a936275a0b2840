-- Nulls and missing partners on both sides.
SELECT f.id, d.id, f.s, d.amount FROM facts f JOIN dims d ON f.k = d.k
