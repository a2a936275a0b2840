-- Patterns of several texts, in filters, columns and conditions, of nulls and of empty texts.
SELECT f.id, f.s LIKE '%A%b%' AS a, concat(f.s, 'x', f.k) LIKE 'A%x%1' AS b,
       f.s NOT LIKE '%ä%b%' AS c, f.s LIKE '%\%%b%' AS d
FROM facts f LEFT JOIN dims d ON f.k = d.k AND concat(f.s, d.s) LIKE '%b%A%'
WHERE concat(f.s, f.day) NOT LIKE '%b%-02-%' OR f.s IS NULL
