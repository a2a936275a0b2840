-- NaN and -0.0 are made equal where they are keys.
SELECT a.d, count(*) FROM dims a JOIN dupes b ON a.d = b.d GROUP BY a.d
