SELECT ticket FROM sales WHERE customer = 1 AND item IN (
  SELECT inventory.item FROM inventory JOIN dates ON quantity = day WHERE year < 2000)
UNION ALL SELECT ticket FROM sales WHERE customer = 2 AND item IN (
  SELECT inventory.item FROM inventory JOIN dates ON quantity = day WHERE year < 2000)
