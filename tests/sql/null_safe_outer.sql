SELECT a.id, b.id, b.s FROM dims a LEFT JOIN nulls b ON a.k <=> b.k AND a.s <=> b.s
