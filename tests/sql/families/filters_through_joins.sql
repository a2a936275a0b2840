-- Filters go below a join to both sides; the keys of the small side then filter the scan of the large one.
SELECT sum(s.amount) FROM sales s JOIN dates d ON s.sold = d.day
WHERE d.year = 2000 AND ((s.amount = 1 AND d.day < 40) OR (s.amount = 2 AND d.day > 5))
