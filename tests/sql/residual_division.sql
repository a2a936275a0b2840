-- With ANSI, the pair of a row with itself divides by zero.
SELECT a.id, b.id FROM dims a JOIN dims b ON a.k = b.k AND 100 / (a.id - b.id) > 3
