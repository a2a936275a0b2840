-- Too large for its type: null without ANSI, an error with it.
SELECT a.k, sum(a.amount) FROM facts a JOIN dupes b ON a.k % 3 = b.k GROUP BY a.k
