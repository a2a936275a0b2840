SELECT * FROM items WHERE id + id > 3 AND name <> color
