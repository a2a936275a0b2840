-- Outer joins whose right side is not used are left out: below DISTINCT, and where that side has one row a key.
SELECT DISTINCT a.k FROM facts a LEFT JOIN dims b ON a.k = b.k
UNION ALL SELECT a.k FROM dupes a LEFT JOIN (SELECT DISTINCT k FROM dims) b ON a.k = b.k
