-- Null without ANSI, an error with it.
SELECT d.k, sum(f.amount) FROM facts f JOIN dupes d ON f.id % 9 = d.k GROUP BY d.k
