SELECT count(*), sum(a.id), sum(g.id) FROM dims a JOIN dupes b ON a.k = b.k JOIN spans c ON c.id = b.id
LEFT JOIN nulls e ON e.id = c.id LEFT JOIN nothing n ON n.k = a.k JOIN facts g ON g.id = a.id
