SELECT a.id, b.id, c.id FROM dims a JOIN dims b ON a.k = b.k JOIN dims c ON b.id = c.id
