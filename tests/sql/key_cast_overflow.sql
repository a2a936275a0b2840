SELECT a.id, b.id FROM facts a JOIN dims b ON cast(a.big * 1000 AS int) = b.k
