-- Values of IN that are repeated are left out, and long lists become a set.
SELECT id FROM facts WHERE k IN (1, 2, 2, 3) OR k IN (10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)
