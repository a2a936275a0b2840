-- They wrap around without ANSI, and are an error with it.
SELECT d.s, sum(f.big * 1000000000000) AS total, sum(f.id) AS ids FROM facts f JOIN dupes d ON f.id % 9 = d.k GROUP BY d.s
