SELECT a.id, b.id FROM dims a FULL JOIN dupes b ON a.k = b.k AND a.id < b.id
