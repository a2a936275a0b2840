-- set spark.selinger.stats.sampling.budgetMs=0
SELECT * FROM sales JOIN items ON sales.item = items.id WHERE items.name LIKE '%7%'
