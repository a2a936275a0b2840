SELECT a.id, b.id FROM dims a JOIN dupes b ON a.s COLLATE UTF8_LCASE = b.s COLLATE UTF8_LCASE AND a.k = b.k
