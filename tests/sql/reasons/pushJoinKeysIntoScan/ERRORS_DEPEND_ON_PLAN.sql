SELECT a.k, b.s FROM (SELECT * FROM facts WHERE 100 / (k + 1) > 1) a JOIN dims b ON a.id = b.id
