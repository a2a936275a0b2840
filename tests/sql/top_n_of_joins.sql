-- The first rows are found before the joins: the outer one repeats rows, and the inner one removes none.
SELECT f.id, f.big, a.s
FROM facts f JOIN dims a ON f.k = a.id LEFT JOIN dupes b ON a.k = b.k AND b.flag AND b.id < 60
ORDER BY f.big DESC NULLS LAST, f.id LIMIT 40 OFFSET 7
