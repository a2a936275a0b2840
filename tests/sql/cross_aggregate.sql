SELECT count(*), min(a.id + b.id), max(a.id - b.id) FROM dims a CROSS JOIN spans b
