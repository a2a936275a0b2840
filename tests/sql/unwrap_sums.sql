SELECT id, k, big FROM facts
WHERE k + 1 > 100 AND big - 5 < 200000000 OR 10 - k >= 5 OR k * 3 BETWEEN 30 AND 40 OR big + 1 IN (1000004, 5) OR k + 2147483600 > 0
