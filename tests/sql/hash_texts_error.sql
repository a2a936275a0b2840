SELECT k, max(string(100 / (id - 7))) FROM facts GROUP BY k
