SELECT f.id, b.id FROM facts f FULL JOIN dupes b ON f.k = b.k AND f.id < b.id
