-- The same without an equality.
SELECT a.id, b.id FROM dims a JOIN spans b ON cast(a.id * 100000000 + b.id AS int) > b.low AND b.id < 5
