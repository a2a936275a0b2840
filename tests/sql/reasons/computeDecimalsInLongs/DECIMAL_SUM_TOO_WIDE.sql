SELECT k, sum(amount) FROM facts GROUP BY k
