SELECT * FROM items WHERE rand() < 2 AND rand() < 2
