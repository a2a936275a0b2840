SELECT 'inner', a.id, b.id FROM dims a JOIN nothing b ON a.k = b.k
UNION ALL SELECT 'left', a.id, b.id FROM dims a LEFT JOIN nothing b ON a.k = b.k
UNION ALL SELECT 'right', a.id, b.id FROM dims a RIGHT JOIN nothing b ON a.k = b.k
UNION ALL SELECT 'full', a.id, b.id FROM nothing a FULL JOIN nulls b ON a.k = b.k
UNION ALL SELECT 'semi', a.id, null FROM dims a LEFT SEMI JOIN nothing b ON a.k = b.k
UNION ALL SELECT 'anti', a.id, null FROM dims a LEFT ANTI JOIN nothing b ON a.k = b.k
UNION ALL SELECT 'cross', a.id, b.id FROM dims a CROSS JOIN nothing b
