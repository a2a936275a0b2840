SELECT s, id, rank() OVER (PARTITION BY s ORDER BY id) FROM facts
