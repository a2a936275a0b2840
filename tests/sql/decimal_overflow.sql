-- Null without ANSI, an error with it.
SELECT a.id, a.amount * b.amount * 100000 FROM dims a JOIN dupes b ON a.k = b.k
