SELECT a.id, b.id FROM dims a JOIN dupes b ON a.k = b.d JOIN spans c ON c.low = a.amount
