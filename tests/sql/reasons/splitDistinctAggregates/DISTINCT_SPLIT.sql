-- set spark.selinger.aggregate.splitDistinctMinGain=0
SELECT customer, count(DISTINCT item), count(DISTINCT amount) FROM sales GROUP BY customer
