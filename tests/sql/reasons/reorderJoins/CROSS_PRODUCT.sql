SELECT count(*) FROM dates CROSS JOIN reasons CROSS JOIN customers
