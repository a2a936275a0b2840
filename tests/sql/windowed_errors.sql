-- The aggregate of one group is divided by zero; the rows of this group are filtered out elsewhere.
SELECT f.id FROM facts f WHERE f.flag AND f.k <> 7 AND f.id > (SELECT sum(x.id) / max(CASE WHEN x.k = 7 THEN 0 ELSE 1 END) FROM facts x WHERE x.k = f.k)
