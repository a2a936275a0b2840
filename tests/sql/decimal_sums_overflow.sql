-- Too large for its type: null without ANSI, an error with it. Without signs the order of rows does not matter.
SELECT a.k, sum(abs(a.amount)) FROM facts a JOIN dupes b ON a.k % 3 = b.k GROUP BY a.k
