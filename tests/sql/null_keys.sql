SELECT 'left', a.id, b.id FROM nulls a LEFT JOIN dims b ON a.k = b.k
UNION ALL SELECT 'full', a.id, b.id FROM nulls a FULL JOIN nulls b ON a.k = b.k
UNION ALL SELECT 'anti', a.id, null FROM nulls a LEFT ANTI JOIN dims b ON a.k = b.k
UNION ALL SELECT 'semi', a.id, null FROM nulls a LEFT SEMI JOIN dims b ON a.k = b.k
