SELECT a.id, b.id FROM dims a JOIN spans b ON a.k = b.low OR a.id = b.id
